"""Recipes: files that start a plan in the user's own stack."""
