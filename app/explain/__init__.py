"""Why a plan is as fast as it is, why others are not offered, and what would change it.

as_json      explanations as JSON: the keys that docs/explanations.md documents
charts       the chart of a plan's sensitivity: what each input moves
command      runcast explain: why the best plan, or a named layout, is as it is; one against
             another
document     explanations described once: differences, bottlenecks, changes and
             sensitivity as tables
explained    explanations of plans and layouts: facts and prices meet core.explain
page         why a plan is the best: the next bottleneck, and on request everything that was
             compared
question     everything that runcast explain is asked: of the best plan, of one named
             layout, or of two
sensitivity  how far a plan moves with each input, with its layout as it is or searched
             again, and which unknown its interval is made of
words        explanations in words: differences, obstacles, bottlenecks, changes
"""
