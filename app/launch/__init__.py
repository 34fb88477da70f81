"""The files that launch a plan."""
