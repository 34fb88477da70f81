"""Habits of software stacks, and the flag of a launch file that makes each so.

adapters         how a stack applies adapters, norms and rotation: hardware/stack_habits.csv
flags            one table, stack x habit -> flag: hardware/habits/flags.csv
optimizers       how a stack runs AdamW and Adafactor: hardware/stack_habits.csv
options          torch.compile and CUDA graphs, where the scenario leaves them open
remat            what a named checkpoint policy of JAX repeats of a forward pass
unnamed          how software works that has no row of its own: built_on.csv, unnamed.csv
workload_fields  fields of a workload that habits decide alone, of plans and of runs
"""
