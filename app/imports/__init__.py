"""Output of other tools: benchmarks, profiles and training logs, compared with a forecast."""
