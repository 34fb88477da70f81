"""What may be wrong with a run that is alerted, and what helps."""
