"""Made-up plans, jobs, results and recipes that tests use."""
