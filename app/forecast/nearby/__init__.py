"""What measured runs like a plan say about its forecast (core/evidence/residual.py).

moved  the runs that are like each row of a search, and its step after them
"""
