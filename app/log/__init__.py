"""The log: one line per event, without secrets.

log         the log: one line per event on standard error, JSON if RUNCAST_LOG=json
memory      the bytes that a value holds in memory, and giving freed ones back to the system
redaction   what the log must not contain: secrets of the environment, and whatever looks
            like one
search_log  log searches: how long they took and how much they searched, never the
            scenario
"""
