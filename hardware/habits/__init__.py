"""Habits of software stacks, and the flag of a launch file that makes each so.

flags  one table, stack x habit -> flag: hardware/habits/flags.csv
"""
