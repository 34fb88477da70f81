"""The tables, step by step: one file a step, never edited after it was released."""
