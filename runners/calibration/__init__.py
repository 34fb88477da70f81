"""From results of probes to a calibration: parsing, validity, fit.

fit          fit of a calibration: constants of a machine, joined with their priors, with
             errors
fit_compute  fit of matmuls, attention, memory and the host link of one device
fit_links    fit of links: collectives as curves, and the rates and latencies of links
held_out     the held-out training step of the probe, and its forecasts
probe_plan   plan of a probe: calib-plan/1, the file that runners/probes/plan.py reads
result       calibration results: calib-result/1, refused with a reason unless everything
             is sound
validity     validity of a calibration result: gates, each with a sentence for the reader
"""
