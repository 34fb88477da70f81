"""Accelerators, clusters and offers as records, and measured corrections of them."""
