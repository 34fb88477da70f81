"""Join facts and prices with core: scenario in, answer out. Knows no page, command or table."""
