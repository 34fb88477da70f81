"""Forecasts compared with published runs and with a user's own, and the fit to published runs.

The folder runs reads published runs as input columns of the estimator.
"""
