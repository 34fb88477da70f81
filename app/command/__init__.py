"""What every command of the command line needs: options and typed values.

command_log  log each command, with one id per invocation, and show a short message for
             a bug
completion   `runcast completion`: the script with which a shell completes commands and options
given        what was typed after runcast: the options that set a field of the scenario,
             one per line
options      options that several commands share, for Typer
values       turn what was typed after runcast into a scenario
"""
