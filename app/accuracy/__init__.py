"""Forecasts compared with published runs and with a user's own, and the fit to published runs.

as_json         the report of runcast validate as JSON values, and its forecasts as a CSV
                file
blind           forecasts that were made before anybody here had seen the runs: how far
                off they were
charts          the charts of the Accuracy page, drawn from the columns of
                app/accuracy/document.py
choices         what the forecast would have chosen among measured runs: groups to choose
                in, and their regret
closeness       how near a forecast comes by what is known: a stack never seen, one known,
                one's own machine
command         runcast validate and runcast fit: compare forecasts with published runs, and
                refit them
document        the tables of a validation other than the errors: points, memory classes,
                knobs, other estimators, what is not modelled, the rows of a user's file
errors          the tables of forecast errors: one row per set of runs
fit             make fit: fit the fractions of hardware/efficiency.csv to the shipped runs,
                from priors
fit_columns     measured runs as columns for a fit: inputs, measurements, and the groups for
                cross-validation
fit_intervals   the widths of the intervals, fitted to forecasts of runs that the fit had
                left out
fit_kernels     kernels measured alone, as extra rows in the fit of throughput
fit_left_out    forecasts of shipped runs by fits that left them out
fit_report      accuracy of a fit on held-out rows, with every ingredient of the model and
                without each
fit_values      the fitted values of one kind, throughput or memory, from the priors of a table
own_runs        uploaded runs: read with size limits, forecast, and scored like the shipped
                runs
page            the Accuracy page: forecasts compared with published runs and with runs that
                a user uploads
predict         forecast published runs: throughput and memory with their intervals
read_columns    the columns of a file of measured runs: which are read, and what each may hold
readme          the accuracy block of a README, rewritten from a validation: runcast
                validate --readme
regret          regret of choices by forecast: its tables, its sentence and its JSON values
row_columns     published runs as columns of the estimator: questions, layouts and machines
row_layout      the layout of a published run: what its row gives, and the least that fits
row_words       translate the words of published runs to those of a scenario
rows            problems with the rows of a file of measured runs, each with its line number
runs_section    the part of the Accuracy page on single runs: the chart, its summary in
                words, and its data
scenario_of_row  the scenario of a published run: what its row says, as a user's options
scores          compare forecasts of published runs with their measurements and with a
                baseline, by part
section_scores  one section of a validation: the rows that were scored, their metrics,
                families and classes
sections        the report of runcast validate: figures next to the baseline's, and what was
                left out
upload_section  the part of the Accuracy page for uploading one's own runs
validate        runcast validate: forecast published runs, then compare with their
                measurements
words           the results of a validation in sentences, for the page, the terminal and the
                README
"""
