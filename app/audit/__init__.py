"""What a claim about a run implies, and whether physics and the best published run allow it.

as_json    an audit as JSON: the keys that docs/audit.md documents
audit      a claim, audited: its speed in every precision of its accelerator, and everything
           else it says
charts     the chart of the Audit page: a claim beside peak, best published run and forecast
checks     everything a claim says beside its speed: does it add up, fit, and allow for
           failures
claim      what a claim says, from text: a run, how fast or how long, and what it costs
command    runcast audit: what a claim about a training run implies, and what is to be said
           of it
document   an audit described once: the precisions as a table, the reasons, the checks
form       the claim of the Audit page: its fields, from the address, the link's scenario or
           typed
money      the dollars of a claim: their arithmetic, and the price against all that was
           asked for
numbers    numbers of a claim as people type them
page       the Audit page: a claim about a training run, and what is to be said of it
published  the published runs that a claim is held against, and the best one of its class
speed      a claim's speed in one precision: against the dense peak, the best published run,
           the forecast
sums       whether the figures of a claim add up: time, rate, MFU, units, and what is
           counted
words      an audit in sentences
"""
