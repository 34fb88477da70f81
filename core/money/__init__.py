"""Dollars, energy and carbon of a run.

bill             bill of a run, line by line, each with a lower, an expected and an upper
                 figure
compute_optimal  compute-optimal training: the model size and tokens with the lowest loss
                 for a budget
cost             hours and dollars of a run
energy           energy of a run at the plug and at the meter, and its CO2 emissions
other_costs      dollars of a run other than its instances: storage, traffic and credits
owned            cost of a GPU-hour for the owner of the GPU
purchase         cost of reservations and capacity blocks, and shares of simulated samples
scaling          how many GPUs, and when: savings of more GPUs and of waiting for a lower
                 price
total            time and cost of a whole run, all in: mean, P10, P50 and P90, and the chance of a
                 deadline
"""
