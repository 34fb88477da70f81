"""One file per price source behind `fetch(session)`; pricing/sources.py lists them."""
