"""Scenarios kept under a name."""
