"""Audit of a claimed run: what the claim implies, and whether hardware limits and the best
published run allow it.
"""
