"""Failures, checkpoints and spot interruptions: how long a run really takes.

availability  availability of spot capacity: traces of uptimes, their averages, and
              simulated traces
checkpoint    checkpoints: how long one takes, and the best interval between two of them
failures      failure rates of a job, waits for machines, and slowdown by straggling nodes
finish_time   finish time of a job that may fail: P50 and P90, by inversion and by a quick
              fit
goodput       time of a job that fails and restarts: its mean, its variance and its lost
              parts, exactly
monte_carlo   simulation of a job that fails, event by event: where there is no closed
              form, and as a test
policies      simulation of a job on spot capacity under a purchase policy, on traces,
              spell by spell
reliability   failures to first order, for comparison: exact times are in
              core/failures/goodput.py
time_factor   how much longer than forecast work takes: a shifted log-normal of median 1, from
              the width and the skew of the speed
spot          spot machines in closed form: hazards, fleets, cost of a useful hour and
              break-even
"""
