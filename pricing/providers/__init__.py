"""Price sources, one module each, with a `fetch(session)`; pricing/sources.py lists them."""
