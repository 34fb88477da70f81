"""Facts about machines: tables with sources, and what loads them.

architectures     load what the parts of one architecture share: hardware/architectures.csv
carbon            carbon of a cloud region's grid and the PUE of its buildings:
                  hardware/carbon.csv
claims            tables behind the Method page: claims that others print, formulas, what is
                  modelled or not
cross_validation  how far forecasts are from runs that their fit has not seen:
                  hardware/cross_validation.csv
decision_tables   tables of published advice: which strategy or stack guides name for which
                  case
efficiency        load the fractions of a physical rate that software reaches, by stack;
                  write what was fitted
estimators        what other estimators print of their own accuracy:
                  hardware/published_estimators.csv
facts             load accelerator and fabric facts: one row per number, each with the
                  source that prints it
foreign_csv       read a CSV file from outside: hostile until it is parsed, never larger
                  than its bounds
instances         load what cloud machines are made of: how many accelerators, how they are
                  joined, what host
measured          read published, measured training runs: what was configured apart from
                  what was measured
measured_cells    one row of a file of measured runs, cell by cell: its value, or the reason
                  why it has none
measured_kernels  read hardware/measured_kernels.csv: rates of single kernels, measured
                  alone
measured_model    one row of a table of measured models as a Transformer, and what had to be
                  assumed for it
model_architectures  load what published architectures of models add to their
                  dimensions
names             one canonical id per accelerator, and every other spelling of it
nccl_env          what NCCL is told about each fabric, with one line of reason each:
                  hardware/nccl_env.csv
power             what machines draw beside their accelerators, and how much a project
                  computes beside its run: hardware/power.csv
published_rates   load training rates that somebody printed and that are no row of
                  measured_runs.csv
reliability       how often clusters fail and how long they take to restart:
                  hardware/reliability.csv
role_facts        tables in which a quantity has one row that is used, and any number that
                  others published
spot              how often spot machines are taken away and how long they stay away:
                  hardware/spot.csv
tables            read a table of facts row by row, so that a bad one is named by file and
                  line
"""
