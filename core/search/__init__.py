"""The search: every layout of a job, pruned, timed and ranked."""
