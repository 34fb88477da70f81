"""Published runs as input columns of the estimator, from settings and never measurements."""
