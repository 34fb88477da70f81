"""Compute our answers to published advice and claims, which hardware/*.csv ships.

`python -m tests.support.guides` writes them; tests/whole/test_published_advice.py compares them.
"""
