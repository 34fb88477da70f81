"""Machines of a job as columns: one accelerator type, its node and its network."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import nan  # one object, so that clusters without a figure are equal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.machine.accelerator import Accelerator
from core.numeric import Numeric

# Best measured matmul over peak, for accelerators without a measurement: the median of the 29
# parts of hardware/accelerators.csv whose own matmul is measured (0.43 to 0.97), without GeForce
# cards, whose peak is of half the rate; a test ties it.
ASSUMED_CEILING = 0.763
# hardware/fabrics.csv; a test ties them.
NVLINK_HOP_S = 3.1e-6
INFINIBAND_HOP_S = 9.6e-6
ASSUMED_HOST_LINK_BYTES_PER_S = 31.5e9  # PCIe 4 x16, where no source prints the link to the host

# Whose memory JAX takes in part when it starts: of GPUs (docs.jax.dev: gpu_memory_allocation).
POOLED_VENDORS = ("nvidia", "amd")

Table: TypeAlias = tuple[Any, ...] | NDArray[np.float64]
TABLES = ("matmul_at", "matmul_weights")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Rates of one device and the shape of its node. Each field a number or a column; a table is
    a tuple of one cluster, or an array with a first axis of clusters."""

    peak_flops_per_s: Numeric  # dense 16-bit peak: the denominator of MFU
    ceiling: Numeric  # best measured 16-bit matmul / peak
    fp8_ratio: Numeric  # fp8 peak / 16-bit peak; NaN: no fp8
    fp4_ratio: Numeric
    memory_bytes: Numeric
    memory_bytes_per_s: Numeric
    scale_up_bytes_per_s: Numeric
    scale_up_domain: Numeric  # devices joined by the scale-up link
    gpus_per_node: Numeric
    scale_out_bytes_per_s: Numeric  # per device, one direction
    multiprocessors: Numeric = nan  # that tiles are distributed over; NaN: no tiles
    torus_axes: Numeric = 0.0  # of the scale-up links; 0: a switch
    linked_peers: Numeric = 0.0  # devices that each has links of its own to; 0: a switch
    switch_reduces: Numeric = 0.0  # 1: scale-up switches add up an all-reduce (NVLink SHARP)
    network_reduces: Numeric = 0.0  # 1: network switches add up an all-reduce (InfiniBand SHARP)
    power_share: Numeric = 1.0  # of the full power that the device may draw
    scale_up_hop_s: Numeric = NVLINK_HOP_S
    scale_out_hop_s: Numeric = INFINIBAND_HOP_S
    scale_out_all_to_all: Numeric = 1.0  # share of the port rate that messages to all ranks reach
    host_link_bytes_per_s: Numeric = ASSUMED_HOST_LINK_BYTES_PER_S
    newer_than_flash2: Numeric = 0.0  # generations of matrix units that FlashAttention 2 lacks
    fast_exponentials: Numeric = 0.0  # 1: twice the exponentials of its generation
    # Further results of a calibration; 1 and empty without one
    # (core/time/measured_shapes.py).
    attention_factor: Numeric = 1.0  # of the rate of fused attention
    elementwise_factor: Numeric = 1.0  # of the time of elementwise operators
    pools_memory: Numeric = 0.0  # 1: software that takes a pool when it starts does so here
    matmul_at: Table = ()  # log m, log n, log k of measured shapes
    matmul_weights: Table = ()

    def take(self, rows: NDArray[np.intp]) -> Cluster:
        """The clusters of the given row numbers."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return Cluster(
            **{
                n: v if isinstance(v, tuple) or np.ndim(v) == 0 else np.asarray(v)[rows]
                for n, v in values.items()
            }
        )


def cluster_of(
    accelerator: Accelerator,
    *,
    gpus_per_node: int,
    scale_up_domain: int,
    scale_out_bytes_per_s: float,
    scale_up_hop_s: float = NVLINK_HOP_S,
    scale_out_hop_s: float = INFINIBAND_HOP_S,
    scale_out_all_to_all: float = 1.0,
) -> Cluster:
    """The cluster that one node shape makes; a missing measured ceiling is the assumed one."""
    peak = accelerator.bf16_flops_per_s
    measured = accelerator.matmul_flops_per_s
    return Cluster(
        peak_flops_per_s=peak,
        ceiling=ASSUMED_CEILING if measured is None else measured / peak,
        fp8_ratio=nan
        if accelerator.fp8_flops_per_s is None
        else accelerator.fp8_flops_per_s / peak,
        fp4_ratio=nan
        if accelerator.fp4_flops_per_s is None
        else accelerator.fp4_flops_per_s / peak,
        memory_bytes=accelerator.memory_bytes,
        memory_bytes_per_s=accelerator.memory_bytes_per_s,
        scale_up_bytes_per_s=accelerator.scale_up_bytes_per_s,
        scale_up_domain=scale_up_domain,
        gpus_per_node=gpus_per_node,
        scale_out_bytes_per_s=scale_out_bytes_per_s,
        multiprocessors=accelerator.multiprocessor_count or nan,
        torus_axes=float(accelerator.torus_axes or 0),
        linked_peers=float(accelerator.linked_peers or 0),
        switch_reduces=float(accelerator.switch_reduces or 0),
        scale_up_hop_s=scale_up_hop_s,
        scale_out_hop_s=scale_out_hop_s,
        scale_out_all_to_all=scale_out_all_to_all,
        fast_exponentials=accelerator.architecture.fast_exponentials,
        newer_than_flash2=accelerator.architecture.newer_than_flash2,
        pools_memory=float(accelerator.vendor in POOLED_VENDORS),
        host_link_bytes_per_s=accelerator.host_link_bytes_per_s or ASSUMED_HOST_LINK_BYTES_PER_S,
    )


def as_columns(clusters: list[Cluster]) -> Cluster:
    """Many clusters as one: each field a float64 column."""
    names = [f.name for f in fields(Cluster) if f.name not in TABLES]
    columns = Cluster(
        **{n: np.array([getattr(c, n) for c in clusters], dtype=float) for n in names}
    )
    most = max((len(c.matmul_weights) for c in clusters), default=0)
    if not most:
        return columns
    # Measured shapes of all clusters, in equally many rows: a padding row has no weight.
    at, weights = np.zeros((len(clusters), most, 3)), np.zeros((len(clusters), most))
    for n, c in enumerate(clusters):
        if found := len(c.matmul_weights):
            at[n, :found], weights[n, :found] = c.matmul_at, c.matmul_weights
    return replace(columns, matmul_at=at, matmul_weights=weights)
