"""Dollars, energy and carbon of a run.

bill             the bill of a run, line by line: each a lower, an expected and an upper
                 figure that add up
compute_optimal  the model and the tokens that a budget of compute trains to the lowest loss
cost             hours and dollars of a run
energy           energy of a run at the plug and at the meter, and what the grid emits for
                 it
other_costs      dollars of a run beside its instances: storage, traffic, and credits that
                 are taken off
owned            what an hour of a GPU costs to whoever owns it
purchase         what a way to buy capacity makes of the price of an hour: reservations,
                 blocks, samples
scaling          how many GPUs: the counts to compare, what more of them save, and what
                 waiting for a lower price saves
"""
