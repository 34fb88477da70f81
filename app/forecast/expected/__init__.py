"""Time and cost of plans all in: speed, failures, preemption, start-up, billing, the price's age.

preemption  how often spot machines are preempted and for how long, with the sources
total       totals of every plan as columns, by core/money/total.py
"""
