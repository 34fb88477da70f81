"""How the forecast works: the formulas and where each was published."""
