"""A run while it trains, held against its forecast.

as_json     the state of a run as JSON, one line a minute: the keys that docs/watch.md documents
charts      measured against forecast, and an end that narrows, over time
command     runcast watch: follow the log of a run and hold it against its forecast
diagnosis   the causes of an alert: which were seen, and what each remedy is worth
document    a run so far as blocks: the screen of a terminal
follow      follow a run until it ends: read, alert, say its state each minute
learned     what a run teaches the next plan: its speed, its stops, its checkpoints
moves       stay or move: what is left of a run here, and on the best offers of today
over_time   a log that was uploaded, as states of its run over time
page        the Run page
plan        the plan that a run is held against, and what in its log contradicts it
prometheus  the state of a run as a textfile for Prometheus' node exporter
reactions   what an alert starts: the command of the user
run         a run so far: its logs, its tracker, its state at a time
words       a run so far in sentences: its state, its alerts, their causes
"""
