"""Memory of one GPU, by part and by phase.

activations    activation memory of a transformer under tensor, sequence and pipeline
               parallelism
memory         peak memory of the fullest GPU, by part
memory_phases  memory over a training step: the parts of core.memory.memory, phase by
               phase
offload        offloading: what a layout keeps in the memory of the host, and its bytes
reserve        memory of a device that holds no tensor
routed         rows of routed tokens that one rank has room for
stage_params   parameters that one GPU of a pipeline stage holds before data-parallel
               sharding
update         temporaries of the optimizer's step, which reuse the memory of the backward
               pass
"""
