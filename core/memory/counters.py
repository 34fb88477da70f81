"""A peak as different counters read it, and what the allocator wastes nothing on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from core.layout.layouts import Layouts
from core.layout.sharding import (
    INDEX,
)
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.reserve import reserve_of
from core.memory.states import communicators
from core.numeric import Numeric

COUNTERS = ("allocated", "reserved", "device")  # of a peak, in the order of their bytes


def settled_bytes(lay: Layouts, eff: Efficiency, parts: Mapping[str, Numeric]) -> Numeric:
    """Bytes that are allocated once and never move, so that the allocator wastes nothing on them:
    weights, optimizer states, the flat gradients of ZeRO-1 (Megatron-LM,
    megatron/core/distributed/param_and_grad_buffer.py), and buffers of communicators, which are
    not the allocator's. Of the parts `parts`; a packed base is unpacked anew for each matmul."""
    flat = np.where(np.asarray(lay.strategy) == INDEX["zero1"], parts["gradients"], 0.0)
    buffers = communicators(lay) * eff.communicator_bytes
    return np.asarray(parts["parameters"]) + parts["optimizer"] + flat + buffers


def unwasted_bytes(lay: Layouts, eff: Efficiency, parts: Mapping[str, Numeric]) -> Numeric:
    """Bytes by which live memory may be taken as smaller, so that `reserve_bytes` of it leaves
    `settled_bytes` out and the sum of both stays the same."""
    share = eff.fragmentation / (1 + np.asarray(eff.fragmentation))
    return settled_bytes(lay, eff, parts) * share


def unreported_bytes(
    lay: Layouts, cluster: Cluster, eff: Efficiency, *, reserve: Numeric
) -> Numeric:
    """Memory that is missing from the peak that a stack prints: the counters of the allocator
    include neither the context nor the buffers of communicators, and those of allocated bytes not
    what the allocator keeps in reserve either. `reserve`: that part of the peak."""
    context = reserve_of(cluster, eff, live=0.0)
    buffers = communicators(lay) * eff.communicator_bytes
    hidden = (1 - np.asarray(eff.reserve_reported)) * (context + buffers)
    return hidden + (1 - np.asarray(eff.fragmentation_reported)) * (np.asarray(reserve) - context)


def counted_bytes(
    lay: Layouts, cluster: Cluster, eff: Efficiency, *, peak: Numeric, reserve: Numeric
) -> dict[str, Numeric]:
    """The peak as three counters read it: bytes that tensors hold (max_memory_allocated of
    PyTorch), those that its allocator holds (max_memory_reserved), and those of the device, context
    and communicators included (nvidia-smi), which decide whether it runs out. `reserve`: that part
    of the peak."""
    found: dict[str, Numeric] = {"device": peak}
    for name, spare in (("allocated", 0.0), ("reserved", 1.0)):
        counter = replace(eff, reserve_reported=0.0, fragmentation_reported=spare)
        found[name] = peak - unreported_bytes(lay, cluster, counter, reserve=reserve)
    return {name: found[name] for name in COUNTERS}
