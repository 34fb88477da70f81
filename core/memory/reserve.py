"""Memory of a device that holds no tensor.

[JAX] docs.jax.dev, gpu_memory_allocation: a share of a GPU's memory is taken when the program
      starts, and a run is out of memory when that pool is.
"""

from __future__ import annotations

import numpy as np

from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.numeric import Numeric


def reserve_bytes(
    *, live: Numeric, memory_bytes: Numeric, pooled: Numeric, eff: Efficiency
) -> Numeric:
    """Context (at most a tenth of a small device, where contexts are smaller), and memory that the
    allocator cannot use. `live` without `core.memory.counters.settled_bytes`. Contexts lie in what
    a pool leaves of the device, which no tensor gets, where the device is `pooled`. [JAX]"""
    memory = np.asarray(memory_bytes, dtype=float)
    context = np.minimum(eff.reserve_bytes, 0.1 * memory)
    left = (1 - np.asarray(eff.memory_pool)) * pooled * memory
    return np.maximum(context, left) + eff.fragmentation * live


def reserve_of(cluster: Cluster, eff: Efficiency, *, live: Numeric) -> Numeric:
    """`reserve_bytes` of a cluster's devices."""
    return reserve_bytes(
        live=live, memory_bytes=cluster.memory_bytes, pooled=cluster.pools_memory, eff=eff
    )
