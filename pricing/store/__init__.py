"""The store: refresh runs, price history, quarantine, saved scenarios, calibrations.

SQLite in the folder of prices, or PostgreSQL by `RUNCAST_DATABASE_URL`. The published prices are
the snapshot files, so plans have prices whatever the store does.
"""
