"""Programmes: runs that follow one another, from the first ablation to the last stage."""
