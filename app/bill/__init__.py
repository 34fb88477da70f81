"""Everything that a plan costs, line by line, with energy and carbon.

as_json   a bill as JSON: the keys that docs/bill.md documents
bill      everything on the bill of one plan: each term of its cost with its mean, P10 and
          P90, and how it is computed
charts    the chart of a bill: one bar per line, with its P10 and P90
command   runcast bill: everything that the best plan costs, line by line
document  a bill as blocks: its lines as a table, and the rows of its chart
energy    energy of a plan at the plug and at the meter, and the carbon of its region's grid
line      one line of a bill: its label, its amount or why there is none, how it is computed
page      everything on the bill of one plan: a section of the page about prices and risk
"""
