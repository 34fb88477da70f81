"""Code for real nodes: probes, launchers, recipes and the fitting of calibrations.

The one package that may import torch (`pip install -e '.[calibrate]' -c requirements.txt`).
Everything in `runners.probes` is copied to a node as one file (`runners.probe_file`) and run there,
so it imports the standard library, torch and its siblings only.

    one_file    join the modules of a package into one file, without changing their text
    probe_file  the probe as one file, made of the modules in runners/probes/
    run_state   state of every run of the probe, so that a killed launcher can resume
    sweeps      workers for sweeps: processes of this machine, or a Ray cluster
"""
