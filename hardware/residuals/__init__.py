"""Residuals of the shipped runs: how far the model is from each, and what they are compared by.

blind  the record of blind forecasts: blind.csv, one published run a row, as it was
       forecast when nobody here had seen it
table  read and write hardware/residuals/runs.csv, one throughput row a run (make fit)
"""
