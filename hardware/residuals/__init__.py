"""Residuals of the shipped runs: how far the model is from each, and what they are compared by."""
