"""Time of data parallelism: gathers, scatters and reductions, and what computation hides."""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.layout.sharding import column
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.stage_params import StageParams
from core.numeric import Numeric
from core.time import one_by_one, state_traffic
from core.time.overlap import exposed_s, hidden_s


def data_parallel_s(
    work: Workload,
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    params: StageParams,
    layers: Numeric,
    free_s: Numeric,
) -> tuple[Numeric, Numeric]:
    """Exposed and hidden seconds per step of gathers, scatters and reductions.

    A computation hides one communication at a time: that of a micro-batch hides its gathers, and
    what is left of the last micro-batch hides the reduction of gradients. ZeRO-2 scatters after
    every micro-batch, so all of them hide it; FSDP that sums whole gradients scatters in the last
    only. A pipeline gathers once per step. Updated weights hide as gradients do, or not at all
    where nothing runs beside them.
    """
    m = np.asarray(lay.num_microbatches, dtype=float)
    before, last = state_traffic.gathers_of_step_s(work, lay, cluster, eff, params, layers)
    exposed = np.where(work.overlaps_weights, eff.fsdp_exposed, 1.0)
    gathers, hidden = overlapped_s(last, free_s, exposed, eff)
    zero2 = (column(lay.strategy, "shards_gradients") > 0) & (
        column(lay.strategy, "shards_parameters") == 0
    )
    of = (lay, cluster, eff, params, work.trained_fraction, work.gradient_bytes)
    as_held = work.reduces_as_held
    latency_s = state_traffic.buckets_latency_s(*of, as_held)
    back = state_traffic.updated_weights_s(work, lay, cluster, eff, params, latency_s=latency_s)
    gradients, hidden_gradients = overlapped_s(
        state_traffic.gradient_s(*of, as_held, latency_s=latency_s)
        * one_by_one.gradient_passes(work, lay)
        + one_by_one.owners_s(work, lay, cluster, eff, params)
        + state_traffic.replica_s(*of)
        + np.where(work.overlaps_weights, back, 0.0),
        np.where(zero2, m, _hiding_microbatches(lay)) * free_s - hidden / eff.overlap_window,
        np.where(work.overlaps_gradients, eff.dp_exposed, 1.0),
        eff,
    )
    times = np.where(np.asarray(lay.pp) > 1, 1.0, m)
    gradients = gradients + np.where(work.overlaps_weights, 0.0, back)
    if before is last:
        return times * gathers + gradients, times * hidden + hidden_gradients
    earlier, hidden_earlier = overlapped_s(before, free_s, exposed, eff)
    return (
        (times - 1) * earlier + gathers + gradients,
        (times - 1) * hidden_earlier + hidden + hidden_gradients,
    )


def _hiding_microbatches(lay: Layouts) -> Numeric:
    """Micro-batches whose backward passes hide the reduction of gradients: the last one. Of
    interleaved chunks each but the first is done with its gradients before the others: of the last
    group of min(p, m) micro-batches, half a chunk's share comes too late (arXiv:2104.04473,
    figure 4; Megatron-Core reduces each chunk when it is done)."""
    v = np.asarray(lay.virtual_stages, dtype=float)
    group = np.minimum(lay.pp, lay.num_microbatches)
    return np.where(v > 1, np.maximum(group * (1 - 1 / (2 * v)), 1.0), 1.0)


def overlapped_s(
    communication_s: Numeric, computation_s: Numeric, always: Numeric, eff: Efficiency
) -> tuple[Numeric, Numeric]:
    """Exposed and hidden seconds of one communication."""
    hidden = hidden_s(
        communication_s=communication_s,
        computation_s=computation_s,
        always_exposed=always,
        window=eff.overlap_window,
    )
    exposed = exposed_s(
        communication_s=communication_s, hidden_s=hidden, slowdown=eff.overlap_slowdown
    )
    return exposed, hidden
