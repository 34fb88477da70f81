"""Published programmes: models whose stages are printed, with their GPU-hours where they are."""
