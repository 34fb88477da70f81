"""Published runs as input columns of the estimator, from their settings, never their measurements."""
