"""Accelerators, clusters and offers as records, with what was measured of them.

accelerator  what the estimate needs to know of a machine, each number with its source
calibration  what a calibration says of a machine: measured rates, held against what was
             assumed before
cluster      the machines of a job as columns: one accelerator type, its node and its
             network
efficiency   the fractions of a physical rate that real software reaches: the model's free
             parameters
offer        one price seen at one place and day: an instance, its accelerators, its network
"""
