"""What there is to choose from: accelerators, offers and models.

as_json          accelerators and offers as JSON: the documented schemas of runcast gpus and
                 runcast offers
document         accelerators and offers on a terminal, as app/catalogue/as_json.py
                 describes them
model_json       what a model is, as JSON: parameters by part, FLOPs per token, dimensions,
                 source
models_terminal  models on a terminal
"""
