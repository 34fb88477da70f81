"""What runs on a node: modules that reach it as one file, for Python 3.9 and torch 2.4 or newer."""
