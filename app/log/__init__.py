"""The log: one line per event, without secrets."""
