"""Habits of software stacks, and the flag of a launch file that makes each so.

adapters         how a stack applies adapters, norms and rotation: hardware/stack_habits.csv
built_on         software without a row of its own that is built on a stack: built_on.csv
flags            one table, stack x habit -> flag: hardware/habits/flags.csv
optimizers       how a stack runs AdamW and Adafactor: hardware/stack_habits.csv
options          torch.compile and CUDA graphs, where the scenario leaves them open
remat            what a named checkpoint policy of JAX repeats of a forward pass
workload_fields  fields of a workload that habits decide alone, of plans and of runs
"""
