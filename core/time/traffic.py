"""Collectives of activations that a layout needs, and their seconds before any overlap: of tensor,
context, expert and pipeline parallelism.

Sizes are per GPU. Groups: tp neighbours are adjacent, then cp, then data parallel, then pp.

[K23] Korthikanti et al., arXiv:2205.05198, section 4.2: sequence parallelism turns each
      all-reduce of tensor parallelism into an all-gather and a reduce-scatter.
"""

from __future__ import annotations

import numpy as np

from core.layout.layouts import CONTEXT_METHODS, Layouts, dp
from core.layout.workload import (
    Workload,
    expert_load,
    group_routing,
    splits_sequence,
    sums_routed_gradients,
)
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.layer_memory import tokens_per_rank
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
from core.numeric import Numeric
from core.time import collectives, links

# Two of a layer's eight gathers and scatters, those of inputs, are half as large in 8 bits
# (pytorch/torchtitan@06fe2901: docs/float8.md).
INPUTS_IN_8_BITS = 7 / 8


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
    if not np.all(splits_sequence(work, lay) > 0):
        added = links.in_switch_s(cluster, eff, lay, size_bytes=size, ranks=lay.tp, stride=1.0)
        whole = np.minimum(ring, added)
        one = np.where(splits_sequence(work, lay) > 0, ring, whole)
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
