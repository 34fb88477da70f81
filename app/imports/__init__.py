"""Output of other tools: benchmarks, profiles and training logs, held against a forecast.

as_json          an imported file as JSON: the keys that docs/imports.md documents
command          runcast import: what other tools measured, beside what a forecast assumes
compare_command  runcast compare: the log of a run beside the forecast of it
file             one file of another tool: which format it is, what it says, what follows
                 for its accelerator
forecast         the forecast that a log is held against: of the plan that a scenario names
log              the log of a run beside the forecast of it: how far apart they are, and
                 what that is worth
log_json         a compared log as JSON: the keys that docs/imports.md documents
log_words        a log beside its forecast, in sentences
row              a compared run as a row of the user's own measured runs (docs/measured-
                 runs.md)
values           what was typed beside a file of another tool, checked
words            what an imported file says, in sentences
"""
