"""The probe: modules that run on a node as one file, for Python 3.9 and torch 2.4 or newer."""
