"""Collectives of weights and gradients that data parallelism needs, before any overlap.

Sizes are per GPU. Groups: tp neighbours are adjacent, then cp, then data parallel, then pp.

[R20] Rajbhandari et al., arXiv:1910.02054, section 7: volumes of the ZeRO stages.
[V17] Vaswani et al., arXiv:1706.03762, section 3.2.2: projections to queries, keys and values, and
      of the output.
[S20] Shazeer, arXiv:2002.05202, section 2: three matrices where an MLP without a gate has two.
[A24] Azure/AI-benchmarking-guide, ND_A100_v4_results.md, read 2026-11-21: 8 A100 with a port each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from core.layout.layouts import Layouts
from core.layout.sharding import column, reduced_gradient_bytes
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.stage_params import StageParams
from core.memory.states import sums_whole_gradients
from core.numeric import Bools, Numeric, kept_for_last
from core.time import collectives, links

LARGE_TENSORS = 4 + 3  # matrices of a layer: of attention [V17], and of a gated MLP [S20]
PORTS = 8  # network ports of the machine of `fill_bytes`: each buffers its share [A24]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copies:
    """The rings of ranks that hold copies of a stage's parameters: dense ones on dp_shard x cp
    ranks, experts on fewer."""

    ranks: Numeric
    bytes_per_s: Numeric
    hop_s: Numeric
    of_experts: Numeric
    experts_bytes_per_s: Numeric


@kept_for_last  # a step asks up to seven times
def _copies(lay: Layouts, cluster: Cluster, eff: Efficiency, params: StageParams) -> _Copies:
    ranks = np.multiply(lay.dp_shard, lay.cp)
    rate, local = links.bandwidth(cluster, eff, lay, ranks=ranks, stride=lay.tp)
    hops = links.hops(cluster, eff, ranks=ranks, local_ranks=local)
    of_experts = np.maximum(params.expert_shards, 1.0)
    apart = np.multiply(lay.ep, lay.etp)
    experts_rate, _ = links.bandwidth(cluster, eff, lay, ranks=of_experts, stride=apart)
    return _Copies(
        ranks=ranks, bytes_per_s=rate, hop_s=collectives.ring_hop_s(**hops),
        of_experts=of_experts, experts_bytes_per_s=experts_rate,
    )  # fmt: skip


def _over_copies_s(
    lay: Layouts, cluster: Cluster, eff: Efficiency, params: StageParams, bytes_per_param: Numeric
) -> Numeric:
    """Ring all-gather, or reduce-scatter, of a stage's parameters over the ranks that hold
    copies. Latency is not counted here."""
    of = _copies(lay, cluster, eff, params)
    dense_s = collectives.all_gather_s(
        size_bytes=params.dense * bytes_per_param,
        ranks=of.ranks,
        bytes_per_s=of.bytes_per_s,
        latency_s=0.0,
    )
    experts_s = collectives.all_gather_s(
        size_bytes=params.experts * bytes_per_param,
        ranks=of.of_experts,
        bytes_per_s=of.experts_bytes_per_s,
        latency_s=0.0,
    )
    return dense_s + experts_s


def _added_by_switches_s(
    lay: Layouts, cluster: Cluster, eff: Efficiency, params: StageParams, bytes_per_param: Numeric
) -> Numeric:
    """All-reduce of a stage's parameters by switches that add up, where every rank keeps all of
    them; else inf."""
    keeps_all = column(lay.strategy, "shards_optimizer") == 0
    if not np.any(keeps_all):
        return np.inf
    of = _copies(lay, cluster, eff, params)
    dense_s = links.in_switch_s(
        cluster,
        eff,
        lay,
        size_bytes=params.dense * bytes_per_param,
        ranks=of.ranks,
        stride=lay.tp,
    )
    experts_s = links.in_switch_s(
        cluster,
        eff,
        lay,
        size_bytes=params.experts * bytes_per_param,
        ranks=of.of_experts,
        stride=np.multiply(lay.ep, lay.etp),
    )
    return np.where(keeps_all, dense_s + experts_s, np.inf)


def _ring_latency_s(
    lay: Layouts, cluster: Cluster, eff: Efficiency, params: StageParams
) -> Numeric:
    """Latency of one collective of the data-parallel group."""
    of = _copies(lay, cluster, eff, params)
    return (of.ranks - 1) * of.hop_s


def reduced_bytes(
    lay: Layouts, trained: Numeric, gradient_bytes: Numeric, as_held: Bools = False
) -> Numeric:
    """Bytes per parameter in which gradients are reduced, frozen parameters counted as none."""
    reduced = reduced_gradient_bytes(
        strategy=lay.strategy, gradient_bytes=gradient_bytes, as_held=as_held
    )
    return reduced * np.asarray(trained)


def buckets_latency_s(
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    params: StageParams,
    trained: Numeric,
    gradient_bytes: Numeric = nan,
    as_held: Bools = False,
) -> Numeric:
    """Latency of all buckets of gradients, and of the weights that they update."""
    reduced = reduced_bytes(lay, trained, gradient_bytes, as_held)
    buckets = np.maximum(np.ceil(params.dense * reduced / eff.bucket_bytes), 1.0)
    return buckets * _ring_latency_s(lay, cluster, eff, params)


def gradient_s(
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    params: StageParams,
    trained: Numeric,
    gradient_bytes: Numeric = nan,
    as_held: Bools = False,
    *,
    latency_s: Numeric,
) -> Numeric:
    """Seconds per step in which gradients are reduced where weights are not sharded. [R20]

    DDP reduces once: an all-reduce is a scatter and a gather of gradients. ZeRO-1 scatters once;
    ZeRO-2 keeps shards of gradients only, so it scatters them after every micro-batch. `latency_s`
    is that of `buckets_latency_s`.
    """
    reduced = reduced_bytes(lay, trained, gradient_bytes, as_held)
    half = _over_copies_s(lay, cluster, eff, params, reduced) + latency_s
    times = np.where(
        column(lay.strategy, "shards_gradients") > 0, np.maximum(lay.num_microbatches, 1.0), 1.0
    )
    ring = (times + (column(lay.strategy, "shards_optimizer") == 0)) * half
    added = _added_by_switches_s(lay, cluster, eff, params, reduced)
    return np.where(whole_and_shared(lay), np.minimum(ring, added), 0.0)


def updated_weights_s(
    work: Workload,
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    params: StageParams,
    *,
    latency_s: Numeric,
) -> Numeric:
    """Seconds per step in which updated weights are gathered where only the optimizer is sharded,
    or its gradients, too; `latency_s` is that of `buckets_latency_s`. [R20]

    Where an owner's whole tensors are broadcast, one owner after the other, each broadcast fills
    its ring of domains anew: there are as many as owners, or as large tensors if these are fewer.
    """
    sent = column(lay.strategy, "gathered_bytes") * np.asarray(work.trained_fraction)
    gather = _over_copies_s(lay, cluster, eff, params, sent) + latency_s
    if np.any(work.broadcasts_weights):
        ranks = np.multiply(lay.dp_shard, lay.cp)
        local = collectives.local_ranks(ranks=ranks, stride=lay.tp, domain=links.domain(cluster))
        tensors = LARGE_TENSORS * work.model.num_layers / np.asarray(lay.pp)
        port = eff.scale_out * np.asarray(cluster.scale_out_bytes_per_s)
        fill_s = (ranks / local - 1) * eff.fill_bytes / PORTS / port
        gather = gather + np.where(work.broadcasts_weights, np.minimum(ranks, tensors) * fill_s, 0)
    owned = column(lay.strategy, "shards_optimizer") > 0
    return np.where(whole_and_shared(lay) & owned, gather, 0.0)


def whole_and_shared(lay: Layouts) -> Bools:
    """Whether ranks hold copies of whole weights."""
    whole = column(lay.strategy, "shards_parameters") == 0
    return whole & (np.multiply(np.multiply(lay.dp_shard, lay.dp_replicate), lay.cp) > 1)


def gather_s(
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    params: StageParams,
    trained: Numeric,
    layers: Numeric,
    frozen_bytes: Numeric = 2.0,
    gradient_bytes: Numeric = nan,
    *,
    scatters: bool = True,
) -> Numeric:
    """Seconds per micro-batch (per step in a pipeline) where weights are sharded: every layer
    gathered for forward and for backward, its gradients scattered. [R20, section 7.2.2] Not
    `scatters`: its gradients stay where they are until a later micro-batch."""
    # A quantised base is sent in its quantised form.
    weights = np.minimum(column(lay.strategy, "gathered_bytes"), frozen_bytes)
    gradients = reduced_bytes(lay, trained, gradient_bytes)
    # Gathered once where the weights stay: in a pipeline, or without resharding. ZeRO++ gathers
    # its second copy for backward inside the node.
    stays = (np.asarray(lay.pp) > 1) | (np.asarray(lay.reshard) == 0)
    in_node = column(lay.strategy, "secondary_bytes") > 0
    gathers = np.where(stays | in_node, 1.0, 2.0)
    volume_s = gathers * _over_copies_s(lay, cluster, eff, params, weights)
    if scatters:
        volume_s = volume_s + _over_copies_s(lay, cluster, eff, params, gradients)
    nearby = (params.dense + params.experts) * weights / np.asarray(cluster.scale_up_bytes_per_s)
    volume_s = volume_s + np.where(in_node & ~stays, nearby / eff.scale_up, 0.0)
    latency_s = (
        (gathers + scatters) * np.asarray(layers) * _ring_latency_s(lay, cluster, eff, params)
    )
    sharded = column(lay.strategy, "shards_parameters") > 0
    ranks = np.multiply(lay.dp_shard, lay.cp)
    return np.where(sharded & (ranks > 1), volume_s + latency_s, 0.0)


def gathers_of_step_s(
    work: Workload,
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    params: StageParams,
    layers: Numeric,
) -> tuple[Numeric, Numeric]:
    """`gather_s` of each micro-batch but the last, and of the last: they differ where gradients are
    summed whole before one scatter."""
    sent = np.minimum(work.weight_bytes, 2.0)  # what is kept in fp32 travels in 16 bits
    # Linear layers are cast before they are gathered, both ends of the model are not.
    of_ends = params.ends / np.maximum(params.dense + params.experts, 1.0)
    sent = np.where(work.gathers_in_8_bits, np.minimum(sent, 1.0 + of_ends), sent)
    of = (
        lay, cluster, eff, params, work.trained_fraction, layers, sent, work.gradient_bytes,
    )  # fmt: skip
    last = gather_s(*of)
    if not np.any(work.sums_whole_gradients):
        return last, last
    alone = gather_s(*of, scatters=False)
    return np.where(sums_whole_gradients(work, lay), alone, last), last


def replica_s(
    lay: Layouts,
    cluster: Cluster,
    eff: Efficiency,
    params: StageParams,
    trained: Numeric,
    gradient_bytes: Numeric = nan,
) -> Numeric:
    """Seconds per step where shards are replicated (hybrid sharding, or ZeRO-1 inside a group):
    all-reduce of the gradient shards over the replicas."""
    if not np.any(np.asarray(lay.dp_replicate) > 1):
        return 0.0
    shard = params.dense / params.dense_shards + params.experts / params.expert_shards
    shard = shard * np.asarray(trained)
    reduced = reduced_gradient_bytes(strategy=lay.strategy, gradient_bytes=gradient_bytes)
    one = links.all_reduce_s(
        cluster,
        eff,
        lay,
        size_bytes=reduced * shard,
        ranks=lay.dp_replicate,
        stride=np.multiply(np.multiply(lay.tp, lay.cp), lay.dp_shard),
    )
    hybrid = np.asarray(lay.dp_replicate) > 1
    return np.where(hybrid, one, 0.0)
