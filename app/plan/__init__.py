"""The answer: the recommended plan, the ranked table, one plan in detail."""
