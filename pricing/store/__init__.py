"""What an installation remembers: refresh runs, price history, quarantine, scenarios, calibrations.

SQLite beside the snapshots, or PostgreSQL by `RUNCAST_DATABASE_URL`. The snapshots are files and
stay the truth of what is published: whatever the store does, plans have prices.

    condition       the state that the store is in, looked at without changing it
    dump            the whole store as one file, taken while it is in use, and back
    engine          the store: SQLite beside the snapshots, or the database that
                    RUNCAST_DATABASE_URL names
    lease           the right to write what a refresh found, with a fencing token
    models          the tables
    opening         open the store of this installation, its tables made or brought
                    forward
    quarantine      what is held back, since when, and what a person has released
    queries         what the page and the command line ask the store: runs, prices as they
                    changed
    recording       write down what a refresh found: the run, its sources, prices that changed,
                    what is held back
    refresh_record  the store during one refresh: it is asked and told, and never in the way of
                    publishing
    saved           scenarios that people saved, and the index of calibrations
    upgrade         bring the tables of a store forward to those of this version, never
                    back
"""
