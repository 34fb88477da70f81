"""Seconds of a step: kernels, collectives, overlap.

attention        seconds of fused attention (FlashAttention), forward and backward
collectives      time of a collective (alpha-beta model, ring), inside a node, across nodes,
                 or both
gemm             seconds of a matrix multiplication
kernels          operators that are bound by memory bandwidth
layer            seconds of computation of one layer and one micro-batch, by operator,
                 forward and backward
links            what the links of a cluster give to a group of a layout's ranks: rates,
                 hops, all-reduces
measured_shapes  how much faster or slower matmuls of some shape run than a formula says,
                 from a few of them
message_curve    seconds of a message against its size: what measured points say between and
                 beyond them
overlap          what communication hides behind computation, and what both pay while they
                 share the GPU
step             seconds of one optimizer step, by part, and the utilisation that follows
traffic          which collectives a layout needs, and their seconds, before anything hides
                 them
"""
