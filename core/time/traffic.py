"""Collectives that a layout needs, and their seconds before any overlap.

Sizes are per GPU. Groups: tp neighbours are adjacent, then cp, then data parallel, then pp.

[K23] Korthikanti et al., arXiv:2205.05198, section 4.2: sequence parallelism turns each
      all-reduce of tensor parallelism into an all-gather and a reduce-scatter.
[R20] Rajbhandari et al., arXiv:1910.02054, section 7: volumes of the ZeRO stages.
[V17] Vaswani et al., arXiv:1706.03762, section 3.2.2: projections to queries, keys and values, and
      of the output.
[S20] Shazeer, arXiv:2002.05202, section 2: three matrices where an MLP without a gate has two.
[A24] Azure/AI-benchmarking-guide, ND_A100_v4_results.md, read 2026-11-21: 8 A100 with a port each.
"""

from __future__ import annotations

from math import nan

import numpy as np

from core.layout.layouts import CONTEXT_METHODS, Layouts, dp
from core.layout.sharding import column, reduced_gradient_bytes
from core.layout.workload import Workload, expert_load, group_routing, sums_routed_gradients
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.memory import sums_whole_gradients, tokens_per_rank
from core.memory.stage_params import StageParams
from core.model.transformer import (
    Transformer,
    attention_output_size,
    attention_share,
    is_mla,
    is_moe,
    kv_size,
    num_dense_mlp_layers,
    num_mixer_layers,
    num_moe_layers,
    query_size,
)
from core.numeric import Bools, Numeric
from core.time import collectives, links

LARGE_TENSORS = 4 + 3  # matrices of a layer: of attention [V17], and of a gated MLP [S20]
# Two of a layer's eight gathers and scatters, those of inputs, are half as large in 8 bits
# (pytorch/torchtitan@06fe2901: docs/float8.md).
INPUTS_IN_8_BITS = 7 / 8
PORTS = 8  # network ports of the machine of `fill_bytes`: each buffers its share [A24]


def activations_s(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Numeric:
    """Seconds of one all-reduce of a layer's activations over tensor-parallel ranks, or of a gather
    and a scatter of them.

    A step of a ring buffers some bytes before it sends on. Gathers and scatters of sequence
    parallelism gain nothing from switches that add up.
    """
    rate, _, latency = links.group(cluster, eff, lay, ranks=lay.tp, stride=1.0)
    size = 2.0 * tokens_per_rank(work, lay) * work.model.hidden_size
    ring = collectives.all_reduce_s(
        size_bytes=size, ranks=lay.tp, bytes_per_s=rate, latency_s=latency
    )
    ring = ring * np.where(work.gathers_in_8_bits, INPUTS_IN_8_BITS, 1.0)
    fill = 2 * (np.asarray(lay.tp) - 1) * np.minimum(size / lay.tp, eff.fill_bytes) / rate
    ring = ring + fill
    one = ring
    if not np.all(np.asarray(lay.sequence_parallel) > 0):
        added = links.in_switch_s(cluster, eff, lay, size_bytes=size, ranks=lay.tp, stride=1.0)
        whole = np.minimum(ring, added)
        one = np.where(np.asarray(lay.sequence_parallel) > 0, ring, whole)
    return np.where(np.asarray(lay.tp) > 1, one, 0.0)


def divided_layers(model: Transformer, lay: Layouts) -> tuple[Numeric, Numeric]:
    """Shares of the layers whose mixer, and whose MLP, tensor parallelism divides. Routed experts
    that are not divided (etp 1) need no traffic."""
    cut = (np.asarray(lay.etp) > 1) | (np.asarray(model.num_shared_experts) > 0)
    with_mlp = num_dense_mlp_layers(model) + num_moe_layers(model) * cut
    layers = np.maximum(model.num_layers, 1.0)
    return num_mixer_layers(model) / layers, with_mlp / layers


def tensor_parallel_s(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Numeric:
    """Seconds per layer (mean) and micro-batch, forward and backward: as much as 4 all-reduces,
    two of them the MLP's [K23], and where their gradients are summed as many more as experts take
    a token."""
    mixers, mlps = divided_layers(work.model, lay)
    summed = np.where(sums_routed_gradients(work, etp=lay.etp), work.model.experts_per_token, 0.0)
    routed = summed * num_moe_layers(work.model) / np.maximum(work.model.num_layers, 1.0)
    return (2 * (mixers + mlps) + routed) * activations_s(work, lay, cluster, eff)


def context_parallel_s(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Numeric:
    """Seconds per layer and micro-batch, forward and backward.

    Ring and all-gather move keys and values once forward, them and their gradients back
    (arXiv:2310.01889); Ulysses exchanges queries, keys, values and outputs by all-to-all, four
    times in all (arXiv:2309.14509, section 3.2). It gives every rank whole heads: fewer KV heads
    than tp x cp are repeated before the exchange (ALST, arXiv:2506.13996).
    """
    rate, latency, _ = links.group(cluster, eff, lay, ranks=lay.cp, stride=lay.tp)
    tokens = tokens_per_rank(work, lay)
    gathered = 2.0 * tokens * lay.cp * kv_size(work.model) / lay.tp
    ring = 3 * collectives.all_gather_s(
        size_bytes=gathered, ranks=lay.cp, bytes_per_s=rate, latency_s=latency
    )
    domain = links.domain(cluster)
    model = work.model
    kv_heads = np.where(is_mla(model), model.num_attention_heads, model.num_kv_heads)
    repeated = np.maximum(np.multiply(lay.tp, lay.cp) / np.maximum(kv_heads, 1.0), 1.0)
    widths = query_size(model) + kv_size(model) * repeated + attention_output_size(model)
    exchanged = collectives.all_to_all_s(
        size_bytes=2.0 * tokens * widths / lay.tp,
        ranks=lay.cp,
        local_ranks=collectives.local_ranks(ranks=lay.cp, stride=lay.tp, domain=domain),
        **links.all_to_all_rates(cluster, eff, lay.cp),
        latency_s=eff.hop * np.asarray(cluster.scale_up_hop_s),
    )
    ulysses = np.asarray(lay.context_method) == CONTEXT_METHODS.index("ulysses")
    moved = np.where(ulysses, 2 * exchanged, ring) * attention_share(work.model)
    return np.where(np.asarray(lay.cp) > 1, moved, 0.0)


def expert_parallel_exposed_s(
    work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency
) -> Numeric:
    """Exposed seconds per layer (mean) and micro-batch: dispatch and combine, forward and backward.
    The hidden share depends on whether they stay inside the scale-up domain."""
    model = work.model
    domain = links.domain(cluster)
    # Ranks of a group are neighbours in tp x cp x dp of one stage.
    local = collectives.local_ranks(ranks=lay.ep, stride=lay.etp, domain=domain)
    exposed = np.where(np.asarray(lay.ep) > local, eff.ep_network_exposed, eff.ep_exposed)
    exposed = exposed * np.where(work.overlaps_experts, eff.ep_overlapped_exposed, 1.0)
    rank_tokens = tokens_per_rank(work, lay) / lay.tp
    size = 2.0 * rank_tokens * lay.etp * np.multiply(model.experts_per_token, model.hidden_size)
    size = size * group_routing(work, tp=lay.tp, etp=lay.etp)[1]
    size = size * expert_load(work, ep=lay.ep)
    once = collectives.share_sent_once(copies=model.experts_per_token, domains=lay.ep / local)
    one = collectives.all_to_all_s(
        size_bytes=size,
        sent_once=np.where(work.deduplicates, once, 1.0),
        ranks=lay.ep,
        local_ranks=local,
        **links.all_to_all_rates(cluster, eff, lay.ep),
        latency_s=eff.all_to_all_hop * eff.hop * np.asarray(cluster.scale_up_hop_s),
    )
    share = num_moe_layers(model) / np.maximum(model.num_layers, 1.0)
    return np.where(is_moe(model) & (np.asarray(lay.ep) > 1), 4 * exposed * one * share, 0.0)


def pipeline_s(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> Numeric:
    """Seconds per micro-batch and stage: activations to the next stage, gradients back. One hop
    over the network sets the pace of the whole pipeline. Each tensor-parallel rank sends its own
    part, even where all ranks hold everything (arXiv:2104.04473, section 4.1)."""
    size = 2.0 * tokens_per_rank(work, lay) * work.model.hidden_size / lay.tp
    ranks_before = np.multiply(np.multiply(lay.tp, lay.cp), dp(lay))
    domain = links.domain(cluster)
    rate = np.where(
        ranks_before * np.asarray(lay.pp) <= domain,
        eff.scale_up * np.asarray(cluster.scale_up_bytes_per_s),
        eff.scale_out * np.asarray(cluster.scale_out_bytes_per_s),
    )
    hops = 2.0 * np.asarray(lay.virtual_stages)
    return np.where(
        np.asarray(lay.pp) > 1,
        hops * (size / rate + eff.hop * np.asarray(cluster.scale_out_hop_s)),
        0.0,
    )


def _over_copies_s(
    lay: Layouts, cluster: Cluster, eff: Efficiency, params: StageParams, bytes_per_param: Numeric
) -> Numeric:
    """Ring all-gather, or reduce-scatter, of a stage's parameters over the ranks that hold
    copies: dense ones over dp_shard x cp, experts over fewer. Latency is not counted here."""
    ranks = np.multiply(lay.dp_shard, lay.cp)
    rate, _, _ = links.group(cluster, eff, lay, ranks=ranks, stride=lay.tp)
    dense_s = collectives.all_gather_s(
        size_bytes=params.dense * bytes_per_param, ranks=ranks, bytes_per_s=rate, latency_s=0.0
    )
    copies = np.maximum(params.expert_shards, 1.0)
    rate, _, _ = links.group(cluster, eff, lay, ranks=copies, stride=np.multiply(lay.ep, lay.etp))
    experts_s = collectives.all_gather_s(
        size_bytes=params.experts * bytes_per_param, ranks=copies, bytes_per_s=rate, latency_s=0.0
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
    dense_s = links.in_switch_s(
        cluster,
        eff,
        lay,
        size_bytes=params.dense * bytes_per_param,
        ranks=np.multiply(lay.dp_shard, lay.cp),
        stride=lay.tp,
    )
    experts_s = links.in_switch_s(
        cluster,
        eff,
        lay,
        size_bytes=params.experts * bytes_per_param,
        ranks=np.maximum(params.expert_shards, 1.0),
        stride=np.multiply(lay.ep, lay.etp),
    )
    return np.where(keeps_all, dense_s + experts_s, np.inf)


def _ring_latency_s(lay: Layouts, cluster: Cluster, eff: Efficiency) -> Numeric:
    """Latency of one collective of the data-parallel group."""
    ranks = np.multiply(lay.dp_shard, lay.cp)
    _, latency, _ = links.group(cluster, eff, lay, ranks=ranks, stride=lay.tp)
    return (ranks - 1) * latency


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
    return buckets * _ring_latency_s(lay, cluster, eff)


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
    latency_s = (gathers + scatters) * np.asarray(layers) * _ring_latency_s(lay, cluster, eff)
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
