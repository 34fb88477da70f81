"""Imports of measurements from the output of other tools."""
