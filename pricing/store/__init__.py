"""The store: refresh runs, price history, quarantine, saved scenarios, calibrations.

SQLite in the folder of prices, or PostgreSQL by `RUNCAST_DATABASE_URL`. The published prices are
the snapshot files, so plans have prices whatever the store does.

    condition       condition of the store, examined without changing it
    dump            dump of the whole store to one file while it is in use, and its restore
    engine          open the store: SQLite in the folder of prices, or the database of
                    RUNCAST_DATABASE_URL
    lease           lease of the store: the right of one refresh to write, with a fencing
                    token
    models          tables of the store. pricing/store/migrations creates them; a test
                    compares the two
    opening         open the store of this installation, its tables made or brought forward
    quarantine      rows that are held back, since when, and releases by persons
    queries         queries of pages and commands: refresh runs, price changes, cheapest
                    prices
    recording       record a refresh: the run, its sources, changed prices, and the quarantine
    refresh_record  the store during one refresh, whose failures never keep prices from being
                    published
    saved           saved scenarios, and the index of calibrations
    upgrade         upgrade the tables of a store to those of this version, never back
"""
