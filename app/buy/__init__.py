"""Ways to buy the machines of a plan: on demand, spot or reserved, with time and cost of each.

as_json     ways to buy a plan's machines as JSON: the keys of docs/risk.md
charts      the charts of the Risk & money page, from the tables of app/buy/document.py
command     runcast buy: on demand, spot, reserved, a block or owned, side by side for one
            plan
document    ways to buy a plan's machines as rows and columns: what the page draws, lists
            and downloads
kept        ways to buy machines that are kept to the end: on demand, reserved, a block,
            owned
labels      short names of ways to buy, policies and markets
market      how often spot machines are preempted: as given, from a trace, else from
            hardware/spot.csv
page        the Risk & money page: what each way to buy a plan's machines costs, and when
            it ends
plan_costs  the training and the terms behind the cost of one plan
prices      what the machines of a plan cost by purchase kind: one search over all of them
purchases   every way to buy the machines of one plan, side by side: time, dollars, chance
            of being late
simulate    simulates a plan on spot capacity traces, from many starts
spot        a plan on spot machines under each policy, as ways to buy
trace_file  parses a user's trace of spot capacity, CSV or JSON; the file is untrusted
words       sentences about ways to buy a plan's machines
"""
