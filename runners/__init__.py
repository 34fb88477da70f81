"""Code for real nodes: probes, launchers, recipes and the fitting of calibrations.

The one package that may import torch (`pip install -e '.[calibrate]' -c requirements.txt`).
Everything in `runners.probes` is copied to a node as one file (`runners.probe_file`) and run there,
so it imports the standard library, torch and its siblings only.
"""
