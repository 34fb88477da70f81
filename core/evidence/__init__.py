"""Measured runs and published claims, compared with the forecast and with each other."""
