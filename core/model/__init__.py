"""Transformers: dimensions, parameters, FLOPs, named models, Hugging Face configs."""
