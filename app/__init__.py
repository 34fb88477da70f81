"""The dashboard and the command line. No formulas."""
