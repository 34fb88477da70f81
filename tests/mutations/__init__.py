"""Errors planted in the formulas of core, each of which a test must catch."""
