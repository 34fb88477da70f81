"""A programme of runs: every stage on one set of machines, or each on its own."""
