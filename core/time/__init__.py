"""Time of a step: kernels, collectives, overlap.

attention        time of fused attention (FlashAttention), forward and backward
collectives      time of a collective (alpha-beta model, ring), inside a node, across
                 nodes, or both
data_parallel    time of data parallelism: gathers, scatters and reductions, and what
                 computation hides
gemm             time of a matrix multiplication
indexed          gradients of a few rows that are read many times by index: the biases of
                 experts
kernels          memory traffic of operators that are bound by memory bandwidth
layer            computation time of one layer and one micro-batch, by operator, forward
                 and backward
links            links of a cluster as a group of ranks uses them: rates, hops,
                 all-reduces
matmuls          matmuls of one layer: their shapes and seconds, of dense layers, experts
                 and the LM head
measured_shapes  corrections of the predicted rate of matmuls, by shape, from a few
                 measured shapes
memory_bound     operators of one layer that memory bandwidth bounds: bytes per token, and
                 seconds
message_curve    time of a message against its size, from measured points
one_by_one       collectives that some software runs for one tensor after the other
overlap          communication hidden behind computation, and the slowdown of both
                 meanwhile
rates            rates that one GPU achieves: peaks times the fractions that software
                 reaches
repeated         what recompute repeats of a forward pass, and of its collectives
software         software by its date: which features a stack has, and how fast its
                 kernels are
state_traffic    collectives of weights and gradients that data parallelism needs, before
                 any overlap
step             time of one optimizer step, by part, and the utilisation that follows
traffic          collectives of activations that a layout needs, and their seconds before
                 any overlap
weight_update    time of the optimizer's update, and of what is kept on the host instead
                 of the device
"""
