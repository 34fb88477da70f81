"""What every command of the command line needs: options and typed values.

command_log  each command in the log: one id an invocation, and what a bug of ours looks
             like to its user
given        what was typed after runcast: the options that set a field of the scenario,
             one line each
options      the options that commands share, for Typer
values       what was typed after runcast, as a scenario
"""
