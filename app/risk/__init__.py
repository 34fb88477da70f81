"""What failures, checkpoints and restarts do to a plan."""
