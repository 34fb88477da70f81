"""Offloading: what a layout keeps in the memory of the host, and its bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.layout.layouts import Layouts
from core.layout.optimizers import step_bytes_per_param
from core.layout.sharding import column
from core.layout.workload import CPU, NOWHERE, Workload
from core.machine.efficiency import Efficiency
from core.memory.stage_params import stage_params
from core.memory.states import state_bytes
from core.numeric import Numeric

# Places of (optimizer states, weights) that the search tries, least offloading first.
LEVELS = ((NOWHERE, NOWHERE), (CPU, NOWHERE), (CPU, CPU))
HOST_SHARED_BY = 8.0  # GPUs that `host_bytes_per_s` is shared by
USABLE_SHARE = 0.9  # of the host's memory; the rest is for the system and the data loader


def work_on(work: Workload, lay: Layouts) -> Workload:
    """The workload with what each layout keeps on the host, as memory and step time take it."""
    optimizer, params = lay.offload_optimizer, lay.offload_params
    if not (np.any(np.asarray(optimizer) > 0) or np.any(np.asarray(params) > 0)):
        return work
    return replace(
        work,
        offload_optimizer=np.maximum(work.offload_optimizer, optimizer),
        offload_params=np.maximum(work.offload_params, params),
    )


def host_bytes(work: Workload, lay: Layouts, eff: Efficiency) -> Numeric:
    """Bytes of optimizer states, and of weights with their gradients, that one GPU keeps on the
    host; at the end of the pipeline that keeps more.

    These are the states that a device would keep: fp32 master weights and moments [ZeRO-Offload,
    arXiv:2101.06840, section 4.1].
    """
    here = replace(work, offload_optimizer=NOWHERE, offload_params=NOWHERE, paged_optimizer=False)
    kept_where = (
        ("optimizer", lay.offload_optimizer), ("parameters", lay.offload_params),
        ("gradients", lay.offload_params),
    )  # fmt: skip
    ends = []
    for first in (True, False):
        params = stage_params(work, lay, first=first)
        ends.append(
            sum(
                np.where(np.asarray(place) == CPU, state_bytes(here, lay, params, eff, what), 0.0)
                for what, place in kept_where
            )
        )
    return np.maximum(ends[0], ends[1])


def host_rate(lay: Layouts, eff: Efficiency) -> Numeric:
    """Bytes/s of the host's memory for the update of one GPU's states: the figure is that of eight
    GPUs that share a host; where a job has fewer, each has more. One H200 alone on a host of 16
    cores got about 100 GB/s, by what its step took beyond computing (docs/accuracy.md)."""
    return eff.host_bytes_per_s * HOST_SHARED_BY / np.clip(lay.num_gpus, 1.0, HOST_SHARED_BY)


def least_host_s(work: Workload, lay: Layouts, eff: Efficiency) -> Numeric:
    """Least seconds per step in which the host updates the states it keeps; transfers over the link
    are extra (core/time/weight_update.py)."""
    sharded = column(lay.strategy, "shards_optimizer") > 0
    owned = stage_params(work, lay, first=True).held(sharded)
    # Embedding and head may have fewer bytes of state per parameter; they have no experts.
    moved = (owned.all - owned.ends) * step_bytes_per_param(
        state_bytes=work.optimizer_state_bytes, weight_bytes=eff.own_weight_bytes
    )
    on_host = np.asarray(lay.offload_optimizer) > 0
    return np.where(on_host, moved * work.trained_fraction / host_rate(lay, eff), 0.0)
