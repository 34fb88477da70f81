"""Bounded session with a price source: addresses, size, time, decoding."""
