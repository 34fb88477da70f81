"""Failures, checkpoints and spot interruptions: how long a run really takes."""
