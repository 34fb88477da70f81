"""Facts about machines: tables with sources, and their loaders.

architectures     load what the parts of one architecture share: hardware/architectures.csv
carbon            carbon of a cloud region's grid and the PUE of its buildings:
                  hardware/carbon.csv
claims            tables of the Method page: published claims, formulas, and what is
                  modelled or not
cluster_products  products of clouds by what joins their machines:
                  hardware/cluster_products.csv
cross_validation  forecast errors and regret on runs left out of the fit:
                  cross_validation.csv and choices.csv
decision_tables   tables of published advice: which strategy or stack guides recommend for
                  which case
efficiency        efficiency profiles of software stacks: load the table, and write fitted
                  values
estimators        published accuracy of other estimators:
                  hardware/published_estimators.csv
facts             facts of accelerators and fabrics: one row per number, with its source
foreign_csv       bounded reader of CSV files from outside, which are hostile until parsed
instances         cloud machines: number of accelerators, links and host of each instance
                  type
measured          published, measured training runs: configured and measured columns, kept
                  apart
measured_cells    cells of a file of measured runs: each a value, or the reason why it has
                  none
measured_kernels  measured rates of single kernels: hardware/measured_kernels.csv
measured_model    a row of the table of measured models as a Transformer, with what had to
                  be assumed
model_architectures  load what published architectures of models add to their dimensions:
                  biases, norms, positions
model_facts       what a launch file needs of a named model beyond its dimensions:
                  hardware/model_facts.csv
names             names of accelerators: one canonical id, and its other spellings
networks          what joins the machines of an offer: stated, documented, usual, or nothing
nccl_env          NCCL variables of each fabric, each with a reason: hardware/nccl_env.csv
power             power of hosts, and compute of a project besides its final run:
                  hardware/power.csv
published_rates   published training rates that are not in measured_runs.csv
reliability       failure rates and restart times of clusters: hardware/reliability.csv,
                  failure_rates.csv
role_facts        tables of facts with one row per quantity in use, and any number of
                  published ones
slices            shapes in which chips of a torus are rented: hardware/slices.csv
spot              preemption rates and outages of spot machines: hardware/spot.csv
stack_support     what each software stack takes: hardware/stack_support.csv,
                  hardware/async_checkpoints.csv
supply            what a seller lets a customer have, starts in and bills at least:
                  hardware/supply.csv
tables            reader of tables of facts; errors name the file and the line
"""
