"""What published guides advise and claim, and what the forecast says of each row.

against_ddp  what a way to train costs against DDP: guides print one figure, we forecast
             the case
as_json      decisions as JSON: the documented, versioned schema of runcast decide
             --json
cases        cases of a claim, on bare nodes: how much slower one is than another, and
             how that is written
claim_text   what we find where somebody prints a figure, and how its arithmetic is
             written down
claims       every published claim with our own figure: facts meet
             core/evidence/published_claims.py
command      runcast decide: the published decision tables, answered, on a terminal and
             as JSON
decision     the answer to one row of a published decision table: what it holds, and its
             words
decisions    every row of the published decision tables, answered: the one list behind page
             and command
document     decisions described once: as blocks, table by table, and as the Markdown of the
             page's boxes
figures      figures that decision tables print: cost against DDP, rules of thumb, savings
             of sharding
fixes        70B does not fit on 8 H100: what would make it fit, each priced today, the
             cheapest first
forecasts    our own forecast beside the cases that guides print
inputs       peaks, and what guides print as inputs: networks, power, failures
layouts      layouts that guides name, each beside the best that the search finds for
             the same job
memory       claims about memory, each worked out from presets, accelerators and the
             formulas of core
page         the Recommendations page: what guides advise, row by row, and what we
             recommend instead
prices       prices that guides print, beside the offers that are bundled, each with
             date and source
runs         claims about speed, hours and dollars, worked out from accelerators,
             prices, published runs
savings      claims about what sharding saves, from the accountings of
             core/evidence/published_claims.py
stacks       which software stack a guide names for a job, beside the forecasts of those
             with a profile
strategies   strategies by the names that practitioners use, each as fields of a
             scenario
strategy     the strategy that is recommended for one job, and what that says of the
             published advice
tasks        what can be trained on a few GPUs: every weight, adapters, or adapters on 4-bit
             weights
times        claims about how much longer a step takes: recompute and offload, each from our
             forecast
tuning       claims about fine-tuning: what QLoRA and full fine-tuning need, and how large a
             checkpoint is
words        a decision in sentences: the case, what is recommended, and what the others
             lack
"""
