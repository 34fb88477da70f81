"""Memory of one GPU, by part and by phase.

activations    activation memory of a transformer under tensor, sequence and pipeline
               parallelism
counters       a peak as different counters read it, and what the allocator wastes
               nothing on
layer_memory   activations that one layer and micro-batch keep, and those of all layers in
               flight
logits         memory of the logits and of the loss
memory         peak memory of the fullest GPU, by part
memory_phases  memory over a training step: the parts of core.memory.memory, phase by
               phase
offload        offloading: what a layout keeps in the memory of the host, and its bytes
reserve        memory of a device that holds no tensor
routed         rows of routed tokens that one rank has room for
stage_params   parameters that one GPU of a pipeline stage holds before data-parallel
               sharding
states         model states on one GPU, their copies, and what is gathered of sharded ones
update         temporaries of the optimizer's step, which reuse the memory of the backward
               pass
"""
