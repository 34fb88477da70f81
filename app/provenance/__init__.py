"""Every number of a plan with its formula, what was put in, and its source.

age          how old an input is, in words: prices go stale in a day and are old after a
             week
as_json      the provenance of a plan as JSON: the keys of docs/provenance.md
command      runcast where: where each number of a plan comes from
document     the numbers of a plan described once: a row a number, with its formula, kind,
             source and age
hints        short help for a number of a plan: its formula, this plan's numbers, what it
             rests on
of_energy    where energy and carbon of a plan come from: the figures of its bill
of_facts     the inputs of a plan's numbers as records: facts with the sources that they
             were loaded with
of_failures  where hours, dollars and goodput with failures come from
of_interval  where P10 and P90 of a plan come from: the width of the forecast, and its two
             ends
of_memory    where the memory of a plan comes from: the peak, its parts, the capacity, the
             chance to miss
of_money     where hours and dollars of a plan come from, the interval around them, and what
             failures add
of_speed     where the speed of a plan comes from: tokens a second, and utilisation
of_step      where the time of a step comes from: its parts, each down to rates and fitted
             fractions
page         where each number of the selected plan comes from: a section of the Plan page
record       one number of a plan as a record: what it is, its kind, its formula, its
             inputs, its source
records      where each number of a plan comes from: one record a number, down to what
             somebody printed
"""
