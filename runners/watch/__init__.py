"""Growing logs of a run: followed, with a clock, and read by the parsers of `runners.imports`.

beside        what files that lie with a log say of its run
clock         the time of each line: printed in it, else counted from the steps, else its arrival
event_file    event files of TensorBoard and .wandb files of Weights & Biases, while they grow
follow        lines that files get while they grow, are rotated, cut or replaced
history       a trainer_state.json, which is written anew at each save
job           all files of one job as findings in order of time
lines         lines of one file as steps, by the reader of its format
mlflow_store  metrics of a run in a file store of MLflow
protobuf      fields of a protobuf message, by number
scalars       figures that a tracker keeps by step, as lines of steps
signs         what a line says beside its steps: a start, a checkpoint, a fault
sources       the files of a job: one file, or those of a folder, each with its rank
"""
