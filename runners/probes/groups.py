"""Groups of measurements by name, the most valuable first."""

from __future__ import annotations

from collections.abc import Callable

from runners.probes.attention import measure_attention
from runners.probes.checkpoint import measure_checkpoint
from runners.probes.collectives import measure_collectives
from runners.probes.matmul import measure_matmul
from runners.probes.memory import (
    measure_host_device,
    measure_memory_bandwidth,
    measure_memory_bound,
)
from runners.probes.overlap import measure_overlap
from runners.probes.probe import Probe
from runners.probes.training import measure_holdout, measure_layers, measure_optimizer
from runners.probes.transformer import measure_block, measure_compiled_block

# Groups that do not begin near the end of the budget, because their preparation takes long.
LEAST_S = {"compiled_block": 20.0}
TOGETHER = ("collectives", "overlap")  # groups in which ranks wait for each other

GROUPS: dict[str, Callable[[Probe], None]] = {
    "matmul": measure_matmul,
    "layers": measure_layers,
    "holdout": measure_holdout,
    "attention": measure_attention,
    "collectives": measure_collectives,
    "block": measure_block,
    "memory_bandwidth": measure_memory_bandwidth,
    "memory_bound": measure_memory_bound,
    "overlap": measure_overlap,
    "optimizer": measure_optimizer,
    "host_device": measure_host_device,
    "checkpoint": measure_checkpoint,
    "compiled_block": measure_compiled_block,
}
