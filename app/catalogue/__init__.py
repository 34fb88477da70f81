"""The catalogue of accelerators, offers and models.

as_json   accelerators, offers and models as JSON: the documented schemas of runcast gpus,
          runcast offers and runcast models
command   runcast schema
document  accelerators, offers and models as blocks, from their JSON documents
"""
