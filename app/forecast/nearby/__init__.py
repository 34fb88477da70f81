"""What measured runs like a plan say about its forecast (core/evidence/residual.py)."""
