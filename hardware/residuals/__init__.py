"""Residuals of the shipped runs: how far the model is from each, and what they are compared by.

table  read and write hardware/residuals/runs.csv, one throughput row a run (make fit)
"""
