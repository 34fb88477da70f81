"""Accelerators, clusters and offers as records, and measured corrections of them.

accelerator  records of accelerators: every number that the estimate needs, with its
             source
calibration  calibrated machines: measured rates joined with what was assumed before
cluster      machines of a job as columns: one accelerator type, its node and its network
efficiency   fractions of physical rates that real software reaches: the free parameters
             of the model
offer        the price of one instance at one place and day
rented       what a seller rents with a machine: the network between machines, supply and
             further costs
"""
