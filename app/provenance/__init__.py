"""Every number of a plan with its formula, inputs and source."""
