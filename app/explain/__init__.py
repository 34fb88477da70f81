"""Why a plan is as fast as it is, why other layouts are not offered, and what would change it.

as_json      explanations as JSON: the keys that docs/explanations.md documents
charts       the chart of a plan's sensitivity: what each input moves
command      runcast explain: why the best plan or a named layout is as it is, and how two
             compare
document     explanations as tables: differences, bottlenecks, changes and sensitivity
explained    computes explanations of plans and layouts with core.explain, from facts and
             prices
page         why a plan is the best: the next bottleneck, and all comparisons on request
question     answers runcast explain: about the best plan, one named layout, or two
sensitivity  how much a plan changes with each input, with its layout kept or searched
             again, and which unknowns make up its interval
words        sentences of explanations: differences, obstacles, bottlenecks, changes
"""
