"""The rows of an answer, before any is shown as a plan."""
