"""Files that start a plan in the reader's own stack."""
