"""The probe: modules that run on a node as one file, for Python 3.9 and torch 2.4 or newer.

anonymous    removal of names and secrets of a machine from a result
attention    scaled-dot-product attention, checked against its definition in float64
budget       time budget of a run: seconds that the dollars buy, and the hard end
checkpoint   rate of writing a checkpoint to the disk of the result
collectives  collectives between ranks: six operations, each checked element by element
device       the measured device: where tensors are, and how its caches are emptied
groups       groups of measurements by name, the most valuable first
matmul       matmuls in every dtype, each checked against float64
measuring    run of all groups, with the control between them, and rows merged over ranks
memory       memory-bound operations: elementwise operators, buffers, copies to the host
node         measure one node, or several at once: one file that needs Python >= 3.9 and
             torch >= 2.4
numerics     inputs distributed like those of training, and errors of results against
             float64
overlap      slowdown of a collective and matmuls that run at the same time
plan         reader of the plan, calib-plan/1; a bad plan is refused with a sentence
probe        state of one run of the probe: plan, ranks, device, clock and measured rows
provenance   provenance of a result: place, time, device and software
ranks        the processes of one run and their nodes
result_file  the result file: written atomically, and resumed from after a killed run
rows         schema of a result: its rows, and how FLOPs and bytes are counted
settling     the first seconds of work, until clock and power of a GPU no longer move
state        state of the machine: clocks, power, load, and other processes on the device
timing       timing of a call: warm-up, samples, median and spread
training     training steps: models of several depths, the held-out step, the optimizer
             alone
transformer  layers, weights and FLOPs; time of one block, as written and compiled
"""
