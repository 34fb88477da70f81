"""What there is to choose from: accelerators, offers and models.

as_json     accelerators and offers as JSON: the documented schemas of runcast gpus and
            runcast offers
document    accelerators, offers and models described once, as their JSON documents hold
            them
model_json  what a model is, as JSON: parameters by part, FLOPs per token, dimensions,
            source
"""
