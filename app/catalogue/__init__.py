"""The catalogue of accelerators, offers and models."""
