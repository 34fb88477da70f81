"""Facts about prices: immutable snapshots of offers, their checks, and refreshes."""
