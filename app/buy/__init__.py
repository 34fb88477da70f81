"""Ways to buy the machines of a plan: on demand, spot, reserved, and what each comes to.

as_json     ways to buy a plan's machines as JSON: the keys of docs/risk.md
charts      the charts of the Prices & risk page, of ready columns of app/buy/document.py
command     runcast buy: on demand, spot, reserved, a block or owned, side by side for one
            plan
document    ways to buy a plan's machines as rows and columns: what the page draws, lists
            and downloads
kept        ways to buy machines that are kept to the end: on demand, reserved, a block,
            owned
labels      ways to buy, policies and markets in a few words
market      how often spot machines are taken away: as given, of a trace, else as
            hardware/spot.csv has it
page        the Prices & risk page: what each way to buy a plan's machines costs, and when
            it ends
prices      what the machines of a plan cost by purchase kind: one search over all of them
purchases   every way to buy the machines of one plan, side by side: time, dollars, chance
            to be late
simulate    a plan on spot capacity, played through on traces: every start, at every speed
            it may have
spot        a plan on spot machines under each policy, as ways to buy
trace_file  a trace of spot capacity as a file of the user: CSV or JSON. Hostile until it is
            parsed
words       ways to buy a plan's machines in sentences
"""
