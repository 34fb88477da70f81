"""Output of other tools: benchmarks, profiles and training logs, compared with a forecast.

as_json          an imported file as JSON: the keys that docs/imports.md documents
command          runcast import: what other tools measured, next to what a forecast assumes
compare_command  runcast compare: the log of a run next to its forecast
file             one file of another tool: its format, its figures, and the constants they
                 give for its accelerator
forecast         the forecast to compare a log with: that of the plan a scenario names
log              the log of a run compared with its forecast: the ratio, and the anchor
                 it gives
log_words        a log compared with its forecast, in sentences and as JSON: the keys that
                 docs/imports.md documents
row              a compared run as a row of the user's own measured runs (docs/measured-
                 runs.md)
values           the options given with an imported file, checked
words            an imported file in sentences
"""
