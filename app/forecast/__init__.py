"""Join facts and prices with core: scenario in, answer out. Knows no page, command or table.

alternatives        alternatives to the best plan: the smallest count that fits, the
                    fastest within a budget, the cheapest by a deadline, the best use of
                    the cluster at hand
anchor              correct the forecast with what the user measured
                    (core/evidence/own_runs.py)
answer              join facts and prices with core: takes a scenario, returns an answer
by_count            the best layout of one machine at many GPU counts, in one search
calibration_files   calibration results of this installation: one file each, named by
                    the hash of its content
calibration_origin  where, when and with what a kept result was measured: by calibrate,
                    or by another tool
calibrations        apply the calibrations that a scenario names
case                recompute the case of one plan: its machine, its work, and its
                    layout as one row of columns
choice              what a scenario compares: machines at GPU counts, and the offers it
                    leaves out
excluded            what a search left out and why: counted for each accelerator at each
                    cloud, and in total
failure_inputs      what a job is assumed to suffer: values of the scenario, else of
                    hardware/reliability.csv
failure_job         turn a plan and its risk inputs into the job that
                    core/failures/goodput.py takes
failure_times       how long a job stops to save and to start again: by its size, its
                    machines and its stack
fixed_layout        one named layout: which scenario fields it fixes, and whether the
                    answer keeps all of it
half_network        how much slower a plan is at half its network, where that is assumed
machines            the machines that an offer rents: node shape, network, and which
                    facts had to be assumed
named_layout        complete a layout that a user names: what it leaves out is searched,
                    or taken from another layout if no legal one has what it gives
nearest_fit         when nothing fits: by how much, which part is largest, and the
                    nearest change that fits
one_case            the fastest layout of one job on one kind of machine, as in a guide,
                    without prices
plans               build the plan that one row of an answer shows
points              every ranked plan as columns, for charts, tables and downloads
price_book          combine the quotes and the price book of a scenario with its price
                    snapshot, as machines
resolve             resolve the names that a scenario uses against the tables and this
                    server's data
search              the only way into core's search: the workload, host memory, and what
                    the user measured
search_memory       keep search results by job, so that the next search covers only new
                    jobs
stack_limits        stacks that take a scenario, what each cannot do, and what each leaves to
                    the search
standing            what speaks against recommending a plan, though it is searched and shown
training            what a scenario trains and which choices it fixes, as core's types
whole_layout        the forecast of a layout that a scenario fixes whole
with_failures       every ranked plan with failures: closed forms over columns, without
                    simulation or search
"""
