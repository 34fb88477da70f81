"""Facts and prices meet core: a scenario in, an answer out. No page, no command, no table.

alternatives        what else people ask of an answer: the smallest count that fits, the
                    fastest within a budget, the cheapest by a deadline, the best of the
                    cluster at hand
anchor              what the user measured, as a correction of the forecast
                    (core/evidence/anchor.py)
answer              the one place where facts meet core: a scenario in, an answer out
by_count            the best layout of one machine at many GPU counts, in one search
calibration_files   calibration results of this installation: one file each, named by
                    the hash of what it holds
calibration_origin  where, when and with what a kept result was measured: by calibrate,
                    or by another tool
calibrations        calibrations that a scenario names, as measured rates of its
                    machines
case                a plan's own case computed again: its machine, its work, one row of
                    columns
choice              what a scenario compares: machines at GPU counts, and the offers
                    that it leaves out
excluded            what a search left out and why: counted for each accelerator at each
                    cloud, and in all
failure_inputs      what a job is assumed to suffer: as given, else as
                    hardware/reliability.csv has it
failure_job         a plan and the inputs of its risk as the job that
                    core/failures/goodput.py takes
fixed_layout        one named layout: what it fixes of a scenario, and whether the
                    answer keeps all of it
interval            how long a plan takes, as a range, and the tokens of its run
machines            an offer as the machines it rents: node shape, network, and what had
                    to be assumed of them
named_layout        a layout that somebody names, completed: what it leaves out is
                    searched, as runcast estimate does; where nothing legal has what it
                    says, the rest is taken from another layout
nearest_fit         when nothing fits: by how much, which part is largest, and the
                    nearest change that fits
one_case            one job on one kind of machine, as a guide has it: its fastest
                    layout, prices aside
plans               rows of the search result joined with offers, and the plan that one
                    row shows
price_book          the price book that a scenario names, laid over its price snapshot
                    as machines
resolve             names that exist: what a scenario asks for, as the tables and this
                    server know it
search              the one door to the search of core: what is trained and how, what a
                    search may put on the hosts, and what the user measured
search_log          searches in the log: how long they took and how much they looked at,
                    never what was asked
search_memory       what searches have found is kept by job, so that the next one looks
                    for what is new only
training            what a scenario trains and fixes, as the core takes it
with_failures       every ranked plan with failures: closed forms over columns, no
                    simulation and no search
"""
