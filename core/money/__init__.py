"""Dollars, energy and carbon of a run."""
