"""Every layout of a job, pruned, timed and ranked.

alternatives   what else people ask of a set of plans than the recommended one: each
               answer is a row number
best           what a search is asked for, and what it finds: jobs, the winner of each,
               the nearest miss
bounds         a lower bound of the step time that costs a few operations a row
candidates     the candidates of one GPU count, built in stages: degrees, micro-batch,
               experts, strategy
fastest        the fastest of the layouts that fit: each is timed, or its bound is above
               the time of another
joined_search  one search made of parts of others: the winner of a job does not depend
               on the other jobs
plan           one answer: ranked plans, each with its parts, and what was left out and
               why
ranking        order of plans: what meets the limits first, then by price or by time
search         find the fastest layout that fits, for every machine shape and GPU count
               at once
space          the search space: every candidate layout of every job, as few bytes a row
"""
