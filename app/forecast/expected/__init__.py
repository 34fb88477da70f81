"""Time and cost of plans with failures, preemption, start-up, billing and the price's age."""
