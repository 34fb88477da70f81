"""Lists of scenario values crossed into a table of forecasts, resumable.

cell     one cell of a sweep: a scenario in, its row out
cells    a sweep: the cross product of lists of scenario values, one cell each
file     a sweep as a YAML file: a scenario file whose fields may hold several values
folder   the folder of a sweep: its manifest, its finished cells, and its results
results  the results of a sweep as Parquet and CSV: one row per cell, in the order of the
         cells
run      runcast sweep: read the file, compute the cells that are not finished, write the
         results
"""
