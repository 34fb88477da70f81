"""Time and cost of plans all in: speed, failures, preemption, start-up, billing, the price's age."""
