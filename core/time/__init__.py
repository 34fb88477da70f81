"""Time of a step: kernels, collectives, overlap."""
