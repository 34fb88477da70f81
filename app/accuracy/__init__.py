"""Forecasts held against published runs and against a user's own, and the fit that uses them.

as_json         the report of runcast validate as JSON values, and its forecasts as a CSV
                file
charts          the charts of the Accuracy page, of ready columns of
                app/accuracy/document.py
columns         published runs as columns of the estimator, from what they say of
                themselves; never from what they measured
command         runcast validate and runcast fit: forecasts held against published runs, and
                their fit
document        the runs and the remaining tables of a validation: points, memory classes,
                knobs, other estimators, what is not modelled, the rows of a user's file
errors          how far forecasts are off, one row a set of runs: every table of errors has
                these columns
fit             make fit: the fractions of hardware/efficiency.csv, from priors and the
                shipped runs
fit_ablation    what each ingredient of the model buys: the folds again, with one of them
                switched off
fit_columns     measured runs as columns for a fit: what is predicted, what was measured,
                who belongs together
fit_kernels     kernels measured alone, as further rows of the fit of throughput
fit_report      what a fit reached on rows that it had not seen:
                hardware/cross_validation.csv and a table
own_runs        runs that somebody uploads: read within bounds, forecast, scored as the
                shipped ones are
page            the Accuracy page: forecasts beside published runs, and beside runs that a
                user uploads
predict         forecast published runs: throughput and memory with their intervals
readme          the accuracy block of a README, written anew from a validation: runcast
                validate --readme
rows            what is wrong with the rows of a file of measured runs, each named by its
                line
run_layout      the layout of a published run: the degrees it says, else the smallest that
                fit its memory
run_words       words of published runs in ours: precisions, strategies, networks, what is
                offloaded
runs_section    runs beside their forecasts on the Accuracy page: the chart, in words, and
                its data
scores          put forecasts of published runs beside what was measured there, by part and
                beside a baseline
section_scores  one section of a validation: the rows that were scored, their metrics,
                families and classes
sections        the report of runcast validate: every figure with the baseline's, and what
                was left out
upload_section  the part of the Accuracy page where somebody uploads runs of their own
validate        runcast validate: forecast published runs, then compare with what was
                measured there
words           what a validation says in sentences, for the page, the terminal and the
                README
"""
