"""Every number of a plan with its formula, inputs and source.

age          the age of an input in words: prices are stale after a day and old after a week
as_json      the provenance of a plan as JSON: the keys of docs/provenance.md
command      runcast where: where each number of a plan comes from
document     the numbers of a plan as tables: one row per number, with its formula, kind,
             source and age
hints        short help for a number of a plan: its formula with this plan's numbers, and
             its sources
of_energy    where energy and carbon of a plan come from: the figures of its bill
of_facts     the inputs of a plan's numbers as records: facts with their sources
of_failures  where hours, dollars and goodput with failures come from
of_memory    where the memory of a plan comes from: the peak, its parts, the capacity, the
             chance of running out
of_money     where hours and dollars of a plan and their intervals come from
of_speed     where the speed of a plan comes from: tokens per second with their interval, and
             utilisation
of_step      where the time of a step comes from: its parts, each down to rates and fitted
             fractions
page         where each number of the selected plan comes from: a section of the Plan page
record       one number of a plan as a record: its label, kind, formula, inputs and source
records      where each number of a plan comes from: one record per number, down to
             published inputs
"""
