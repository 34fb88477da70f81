"""A run while it trains: speed, losses and end as its steps tell them, and what is wrong."""
