"""A run while it trains, held against its forecast."""
