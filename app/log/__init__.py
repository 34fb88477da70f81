"""One line an event, without secrets.

log        the log: one line an event on standard error, JSON where RUNCAST_LOG=json
redaction  what a log must not say: secrets of the environment, and whatever looks like one
"""
