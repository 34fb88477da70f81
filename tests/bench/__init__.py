"""Measured times; run by hand."""
