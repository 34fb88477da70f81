"""Measured machines: the job that measures them, the results, and what they change."""
