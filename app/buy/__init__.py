"""Ways to buy the machines of a plan: on demand, spot or reserved, with time and cost of each."""
