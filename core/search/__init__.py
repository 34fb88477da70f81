"""The search: every layout of a job, pruned, timed and ranked.

alternatives   alternatives to the recommended plan: fewest GPUs, fastest, cheapest, the
               user's cluster
best           what a search is asked for, and what it finds: jobs, winners, the nearest miss
bounds         lower bound of the step time, in a few operations per row
candidates     candidates of one GPU count, built in stages: degrees, micro-batch,
               experts, strategy
fastest        the fastest layout of each job: every layout is timed, or its bound exceeds
               another's time
joined_search  searches joined from parts of others: the winner of a job does not depend
               on other jobs
plan           answer: ranked plans, each with its parts, and the exclusions with their
               reasons
ranking        ranking of plans: within the limits first, then by price or by time
recommended    the recommended plan: gates that it has to pass, then cost, time and
               simplicity
search         search for the fastest layout that fits, for every machine shape and GPU
               count at once
space          search space: every candidate layout of every job, in few bytes per row
"""
