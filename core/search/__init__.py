"""The search: every layout of a job, pruned, timed and ranked.

alternatives   alternatives to the recommended plan: fewest GPUs, fastest, cheapest, the
               user's cluster
asked          several questions about the same jobs, as one: what they differ in is a
               column
best           what a search is asked for, and what it finds: jobs, winners, the nearest miss
bounds         lower bound of the step time, in a few operations per row
candidates     candidates of some GPU counts at once, built in stages: degrees, micro-batch,
               experts, strategy
columns        columns of degrees, as tables of rows and as layouts
fastest        the fastest layout of each job: every layout is timed, or its bound exceeds
               another's time
fitting        which rows of a space fit the memory of a job, and are worth timing
found          what a search has found for each question, and from it the winners
job            what a plan is made of: a question, asked of a rented machine at one number
               of GPUs
joined_search  searches joined from parts of others: the winner of a job does not depend
               on other jobs
parts          the candidates of each node shape, as parts of those of its GPU count
plan           answer: ranked plans, each with its parts, and the exclusions with their
               reasons
ranking        ranking of plans: within the limits first, then by price or by time
recommended    the recommended plan: gates that it has to pass, then cost, time and
               simplicity
search         search for the fastest layout that fits, for every machine shape and GPU
               count at once
space          search space: every candidate layout of every job, in few bytes per row
strategies     strategies of data parallelism, and places of what they keep: which are legal
"""
