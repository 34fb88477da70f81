"""Everything that a plan costs, line by line, with energy and carbon."""
