"""Published programmes: models whose stages are printed, with their GPU-hours where they are.

published  load them: published.csv, one row a stage
"""
