"""Growing logs of a run: followed, with a clock, and read by the parsers of `runners.imports`."""
