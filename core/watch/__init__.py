"""A run while it trains: what its steps say of its speed, its losses, its end, and what is wrong."""
