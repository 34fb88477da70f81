"""Collectives that some software runs for one tensor after the other, and what they cost beyond
joint ones."""

from __future__ import annotations

import numpy as np

from core.layout.layouts import Layouts
from core.layout.sharding import column
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.stage_params import StageParams
from core.model.transformer import matrices_per_mlp
from core.numeric import Numeric
from core.time import links, state_traffic, traffic


def split_projections_s(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Numeric:
    """Seconds per layer (mean) and micro-batch of tensor-parallel all-reduces of backward beyond
    one for the input of attention and one for that of the MLP, where queries, keys, values, and the
    gate beside the first matrix of an MLP, are layers of their own: each adds up the gradient of
    its own input (PaddlePaddle/Paddle: fleet/layers/mpu/mp_layers.py: ColumnParallelLinear begins
    with _c_identity, whose gradient is an all-reduce)."""
    if not np.any(work.splits_projections):
        return 0.0
    mixers, mlps = traffic.divided_layers(work.model, lay)
    more = 2 * mixers + (matrices_per_mlp(work.model) - 2) * mlps
    one = traffic.activations_s(work, lay, cluster, eff)
    return np.where(work.splits_projections, more, 0.0) * one


def gradient_passes(work: Workload, lay: Layouts) -> Numeric:
    """Times that the gradients of one step travel over those of their reduction: twice where ZeRO-1
    sums them on every rank and each then takes its own (InternLM/InternEvo@91480c5: internlm/
    solver/optimizer/hybrid_zero_optim.py, reduce_rank=None): an all-reduce is a scatter and a
    gather."""
    of_states = (column(lay.strategy, "shards_optimizer") > 0) & (
        column(lay.strategy, "shards_gradients") == 0
    )
    return np.where(of_states & np.asarray(work.all_reduces_gradients), 2.0, 1.0)


def owners_s(
    work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency, params: StageParams
) -> Numeric:
    """Seconds per step that the gradients of ZeRO-2 take longer than by scatters where each whole
    tensor is reduced to the rank that owns it: all of its bytes pass every link of the ring, not
    all but one rank's, and each fills the ring anew (PaddlePaddle/Paddle: fleet/
    meta_parallel/sharding/group_sharded_stage2.py)."""
    if not np.any(work.reduces_to_owners):
        return 0.0
    ranks = np.multiply(lay.dp_shard, lay.cp)
    rate, latency_s, _ = links.group(cluster, eff, lay, ranks=ranks, stride=lay.tp)
    reduced = state_traffic.reduced_bytes(lay, work.trained_fraction, work.gradient_bytes)
    tensors = state_traffic.LARGE_TENSORS * work.model.num_layers / np.asarray(lay.pp)
    fill_s = (ranks - 1) * (eff.fill_bytes / rate + latency_s)
    more = params.dense * reduced / ranks / rate + tensors * fill_s
    times = np.maximum(np.asarray(lay.num_microbatches, dtype=float), 1.0)
    of_owners = np.asarray(work.reduces_to_owners) & (column(lay.strategy, "shards_gradients") > 0)
    return np.where(of_owners & state_traffic.whole_and_shared(lay), times * more, 0.0)
