"""Audit of a claimed run: what the claim implies, and whether hardware limits and the best
published run allow it.

as_json    an audit as JSON: the keys that docs/audit.md documents
audit      the whole audit of a claim: its speed in every precision of its accelerator, and
           all other checks
charts     the chart of the Audit page: a claim against peak, best published run and forecast
checks     the checks other than speed: whether the figures add up, the run fits in memory
           and failures are allowed for
claim      parses a claim: the run, how fast or how long, and what it costs
command    runcast audit: what a claim about a training run implies, and whether it is
           plausible
document   an audit as blocks: the precisions as a table, the reasons, the checks
form       the form of the Audit page, filled from the address, the link's scenario or by
           hand
money      the dollars of a claim: their arithmetic, and the price against known prices
numbers    parses the numbers of a claim as people type them
page       the Audit page: a claim about a training run, and whether it is plausible
programme  a claim over all stages of a link or of a published programme, from typed values
published  the published runs that a claim is compared with, and the best one of its class
speed      a claim's speed in one precision: against the dense peak, the best published run,
           the forecast
sums       whether the figures of a claim add up: time, rate, MFU, units, and what is
           counted
words      an audit in sentences
"""
