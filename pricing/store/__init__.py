"""What an installation remembers: refresh runs, price history, quarantine, scenarios, calibrations.

SQLite beside the snapshots, or PostgreSQL by `RUNCAST_DATABASE_URL`. The snapshots are files and
stay the truth of what is published: whatever the store does, plans have prices.
"""
