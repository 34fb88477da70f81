"""Habits of software stacks, and the flag of a launch file that makes each so."""
