"""A programme of runs: every stage on one set of machines, or each on its own.

as_json    a programme as JSON
charts     the timeline of a programme
claim      a claim over a whole programme: its GPU-hours, days or dollars against the forecast
command    `runcast programme`
contract   a programme on its machines: each stage with its time and cost, and the whole
document   a programme as tables: its stages, what each changes, the contracts compared
programme  one answer for a programme: contracts ranked as single runs are
rows       stages as rows of a table that a person edits
search     one stage searched over all offers, as columns
stages     the stages of a scenario, each as the scenario that it trains
stages_section  a programme on pages: its stages as a table to edit, and what the whole costs
turned     the budget turned round: how many tokens the main stage may have on one contract
ways       ways to buy the machines of a programme: the cheapest contract of each kind of purchase
words      a programme in sentences
"""
