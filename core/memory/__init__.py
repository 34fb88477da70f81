"""Bytes of one GPU, by part and by phase.

activations    activation memory of a transformer under tensor, sequence and pipeline
               parallelism
memory         peak bytes of the fullest GPU, by part
memory_phases  when in a training step which bytes are alive: the parts of
               core.memory.memory, phase by phase
offload        what waits in the host's memory beside a layout: the workload that results,
               and its bytes
"""
