"""What every command of the command line needs: options, typed values, the plan it is about.

command_log  each command in the log: one id an invocation, and what a bug of ours looks
             like to its user
options      the options that commands share; those that set a field of the scenario have
             one line each
planned      the plan that a command is about: what was typed as a scenario, and what its
             search found
values       what was typed after runcast, as a scenario
"""
