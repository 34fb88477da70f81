"""Every number of a plan with its unit, what it rests on, and its source.

age       the age of an input in words: prices are stale after a day and old after a week
as_json   the provenance of a plan as JSON: the keys of docs/provenance.md
command   runcast where: where each number of a plan comes from
document  the numbers of a plan as tables: one row per number, with kind, source and age
hints     short help for a number of a plan: what it is made of, and its sources
of_facts  what the numbers of a plan rest on: facts, prices and fitted fractions with sources
page      where each number of the selected plan comes from: a section of the Plan page
record    one number of a plan as a record: its value and unit, what it rests on, its source
records   the numbers of a plan, one record each, down to published inputs
"""
