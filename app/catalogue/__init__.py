"""The catalogue of accelerators, offers and models.

as_json     accelerators and offers as JSON: the documented schemas of runcast gpus and
            runcast offers
document    accelerators, offers and models as blocks, from their JSON documents
model_json  a model as JSON: parameters by part, FLOPs per token, dimensions, source
"""
