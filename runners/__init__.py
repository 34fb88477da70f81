"""What touches real nodes: probes, launchers, recipes and the fitting of calibrations.

The one package that may import torch (`pip install -e '.[runners]' -c requirements.txt`).
Everything in `runners.probes` is copied to a node as one file (`runners.probe_file`) and run there,
so it imports the standard library, torch and its siblings only.

    one_file      the modules of one package as one file: their text is joined, not changed
    probe_file    the probe as it reaches a node: one file of the modules in runners/probes/
    run_state     what is remembered of every run of the probe, so that a killed launcher can go
                  on
    sweeps        where the cells of a sweep are computed: processes of this machine, or a Ray
                  cluster
"""
