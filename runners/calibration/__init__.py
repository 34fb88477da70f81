"""From the readings of probes to a calibration: the result, its validity, the fit.

fit          a result as constants of a machine: measured, held against what was assumed,
             with their errors
fit_compute  matmuls, attention, memory and the host's link of one device, measured over
             forecast
fit_links    collectives of a result as curves, and the rates and latencies of links that
             follow
held_out     the probe's own training steps, forecast as any other job: one device, the
             model of the probe
probe_plan   what a probe measures: calib-plan/1, the file that runners/probes/plan.py reads
result       what came back from a node: calib-result/1, refused with a reason unless all of
             it is sound
validity     whether a sound result may be believed: gates, each with a sentence for the
             person who reads it
"""
