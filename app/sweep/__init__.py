"""Lists of scenario values crossed into a table of forecasts, resumable."""
