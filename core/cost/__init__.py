"""What a run takes and costs: one estimator for every page, command and file."""
