"""How many GPUs: time and cost at each count, and whether to wait."""
