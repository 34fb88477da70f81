"""What measured runs like a plan say about its forecast (core/evidence/residual.py).

moved      the runs that are like each row of a search, and its step after them
of_stacks  the stack of each job: that of the highest throughput after what measured runs say
"""
