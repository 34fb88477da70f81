"""What published guides advise and claim, and what the forecast says of each row.

against_ddp  what a way to train costs compared with DDP: guides print one figure, we
             forecast the case
as_json      decisions as JSON: the documented, versioned schema of runcast decide
             --json
cases        cases of a claim, on bare nodes: how much slower one case is than another,
             and the text for it
claim_text   our finding for a printed figure, and how its arithmetic is written down
claims       every published claim with our own figure: applies
             core/evidence/published_claims.py to facts
command      runcast decide: the published decision tables, answered, on a terminal and
             as JSON
decision     the data of one answered row of a published decision table
decisions    answer every row of the published decision tables, for both the page and
             the command
document     decisions described once: as blocks, table by table, and as the Markdown of the
             page's boxes
figures      figures that decision tables print: cost against DDP, rules of thumb, savings
             of sharding
fixes        70B does not fit on 8 H100: changes that make it fit, each at today's
             prices, cheapest first
forecasts    our own forecast for the cases that guides print
inputs       peaks, and what guides print as inputs: networks, power, failures
memory       claims about memory and what sharding saves of it, worked out from presets and
             accelerators
page         the Guides checked page: what guides advise, row by row, and what we
             recommend instead
prices       prices that guides print, compared with the bundled offers, each with date
             and source
runs         claims about speed, hours and dollars, worked out from accelerators,
             prices, published runs
stacks       the software stack that a guide names for a job, and forecasts for the
             stacks with a profile
strategies   strategies by the names that practitioners use, each as fields of a
             scenario
strategy     the strategy or the task recommended for one job, and the verdict on the
             published advice
times        claims about how much longer a step takes with recompute, with offload, in a
             named layout
tuning       claims about fine-tuning: what QLoRA and full fine-tuning need, and how large a
             checkpoint is
words        write a decision in sentences: the case, the recommendation, and what the
             others lack
"""
