"""Growing logs of a run: followed, with a clock, and read by the parsers of `runners.imports`.

clock    the time of each line: printed in it, else counted from the steps, else its arrival
follow   lines that files get while they grow, are rotated, cut or replaced
history  a trainer_state.json, which is written anew at each save
job      all files of one job as findings in order of time
lines    lines of one file as steps, by the reader of its format
signs    what a line says beside its steps: a start, a checkpoint, a fault
sources  the files of a job: one file, or those of a folder, each with its rank
"""
