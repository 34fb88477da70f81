"""Failures, checkpoints and spot interruptions: from a steady run to the time it takes.

availability  when spot capacity is there: a trace of uptimes, what it says on average, and
              drawn ones
checkpoint    checkpoints: how long one takes, and how much work to put between two of them
failures      how often a job is stopped, how long it then waits, and what slow nodes cost
              it
finish_time   when a job that may fail is done: P50 and P90 of its time, by inversion and by
              a cheap fit
goodput       time of a job that fails and restarts: expected, variance, and what it is lost
              to
monte_carlo   a job that fails, played through event by event: for what has no closed form,
              and as its test
policies      a job on spot capacity under a purchase policy, played through on traces,
              spell by spell
reliability   Young's interval between checkpoints, to first order
spot          spot machines in closed form: hazards, fleets, where the time goes, and
              where it stops paying
"""
