"""What runs on a node: modules that reach it as one file, for Python 3.9 and torch 2.4 or newer.

anonymous    what of a machine's names and secrets a result may hold
attention    scaled-dot-product attention, held against its definition in float64
budget       how long a run may take: what the dollars buy, and the hard end
checkpoint   how fast a checkpoint is written to the disk of the result
collectives  collectives between ranks: six operations, each checked element by element
device       the device that is measured: where tensors live, how its caches are emptied
groups       the groups of measurements by name, in the order of their value
matmul       matmuls in every dtype, each held against float64
measuring    group after group: the control between them, the rows of all ranks as one
memory       what moves more than it computes: elementwise operators, buffers, copies to the
             host
node         measure one node, or several at once: one file that needs Python >= 3.9 and
             torch >= 2.4
numerics     inputs as training has them, and how far a result is from float64
overlap      what a collective and matmuls cost each other when they run at once
plan         the plan that is to be measured, calib-plan/1: refused with a sentence unless
             it is sound
probe        one run of the probe: its plan, ranks, device and clock, and what it has
             measured
provenance   where, when and with what was measured
ranks        the processes of one run, and on which nodes they are
result_file  the result on the disk: written whole, and gone on from after a killed run
rows         the words of a result: its schema, what a row is, how FLOPs and bytes are
             counted
state        what the machine says of itself: clocks, power, load, and who else is on the
             device
timing       how a call is timed: warmed up, sampled, and told as a median with its spread
training     training steps: models of several depths, the held-out step, the optimizer
             alone
transformer  A transformer: its layers, weights and FLOPs; the time of one block, as written
             and compiled

    anonymous    what of a machine's names and secrets a result may hold
    attention    scaled-dot-product attention, held against its definition in float64
    budget       how long a run may take: what the dollars buy, and the hard end
    checkpoint   how fast a checkpoint is written to the disk of the result
    collectives  collectives between ranks: six operations, each checked element by element
    device       the device that is measured: where tensors live, how its caches are emptied
    groups       the groups of measurements by name, in the order of their value
    matmul       matmuls in every dtype, each held against float64
    measuring    group after group: the control between them, the rows of all ranks as one
    memory       what moves more than it computes: elementwise operators, buffers, copies to the
                 host
    node         measure one node, or several at once: one file that needs Python >= 3.9 and
                 torch >= 2.4
    numerics     inputs as training has them, and how far a result is from float64
    overlap      what a collective and matmuls cost each other when they run at once
    plan         the plan that is to be measured, calib-plan/1: refused with a sentence unless
                 it is sound
    probe        one run of the probe: its plan, ranks, device and clock, and what it has
                 measured
    provenance   where, when and with what was measured
    ranks        the processes of one run, and on which nodes they are
    result_file  the result on the disk: written whole, and gone on from after a killed run
    rows         the words of a result: its schema, what a row is, how FLOPs and bytes are
                 counted
    state        what the machine says of itself: clocks, power, load, and who else is on the
                 device
    timing       how a call is timed: warmed up, sampled, and told as a median with its spread
    training     training steps: models of several depths, the held-out step, the optimizer
                 alone
    transformer  a transformer: its layers, weights and FLOPs; the time of one block, as written
                 and compiled
"""
