"""Matmuls of one layer: their shapes and seconds, of dense layers, experts and the LM head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.layout.layouts import Layouts
from core.layout.workload import Workload, expert_load, group_routing
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.model import state_space
from core.model.transformer import (
    attention_output_size,
    attention_share,
    is_mla,
    kv_size,
    matrices_per_mlp,
    num_dense_mlp_layers,
    num_moe_layers,
    query_size,
)
from core.numeric import Numeric
from core.time import gemm, measured_shapes
from core.time.rates import Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulSeconds:
    """Dense matmuls of one layer, mean over the layers: forward, and their two gradients."""

    forward: Numeric
    of_input: Numeric
    of_weight: Numeric


def _matmuls(work: Workload, lay: Layouts) -> list[tuple[Numeric, Numeric, Numeric]]:
    """(n, k, share of layers) of the dense matmuls of one layer, cut by tensor parallelism."""
    m, t = work.model, np.asarray(lay.tp)
    h = np.asarray(m.hidden_size, dtype=float)
    mla = np.asarray(is_mla(m), dtype=float)
    layers = np.maximum(m.num_layers, 1.0)
    dense = num_dense_mlp_layers(m) / layers
    shared = num_moe_layers(m) / layers * (np.asarray(m.num_shared_experts) > 0)
    gates = matrices_per_mlp(m) - 1
    shared_size = np.multiply(m.num_shared_experts, m.moe_ffn_hidden_size)
    has_query_rank = mla * (np.asarray(m.q_lora_rank) > 0)
    mixing = attention_share(m)
    queries = query_size(m) * np.where(m.attention_gate, 2.0, 1.0)
    kv_up = np.multiply(m.num_attention_heads, np.add(m.qk_nope_head_dim, m.v_head_dim))
    return [
        ((queries + kv_size(m)) / t, h, (1 - mla) * mixing),
        (queries / t, np.where(has_query_rank > 0, m.q_lora_rank, h), mla * mixing),
        (np.asarray(m.q_lora_rank, dtype=float), h, has_query_rank * mixing),
        (np.add(m.kv_lora_rank, m.qk_rope_head_dim), h, mla * mixing),
        (kv_up / t, np.asarray(m.kv_lora_rank, dtype=float), mla * mixing),
        (h, attention_output_size(m) / t, mixing * np.ones_like(h)),
        (gates * m.ffn_hidden_size / t, h, dense),
        (h, m.ffn_hidden_size / t, dense),
        (gates * shared_size / t, h, shared),
        (h, shared_size / t, shared),
        *state_space.matmuls(m, tp=t),
    ]


def _shape_factor(cluster: Cluster, *, m: Numeric, n: Numeric, k: Numeric) -> Numeric:
    """Measured over predicted rate of matmuls of this shape; 1 without measurements."""
    if not len(cluster.matmul_weights):
        return 1.0
    at, weights = np.asarray(cluster.matmul_at), np.asarray(cluster.matmul_weights)
    sizes = [np.maximum(size, 1.0) for size in (m, n, k)]
    if weights.ndim == 1:
        m, n, k = sizes
        return np.exp(measured_shapes.log_factor(at, weights, m=m, n=n, k=k))
    # Only the rows of machines that were measured: most of a search are not.
    rows = np.flatnonzero(weights.any(axis=1))
    m, n, k = (np.broadcast_to(size, len(weights))[rows] for size in sizes)
    found = np.ones(len(weights))
    found[rows] = np.exp(measured_shapes.log_factor(at[rows], weights[rows], m=m, n=n, k=k))
    return found


def experts_forward_s(
    work: Workload, lay: Layouts, cluster: Cluster, rate: Rates, eff: Efficiency, tokens: Numeric
) -> Numeric:
    """Grouped matmuls of the routed experts on one GPU, mean over layers.

    They process the tokens of ep x etp ranks: each rank sends tokens/tp x k rows.
    """
    m = work.model
    rows = tokens / lay.tp * lay.etp * np.asarray(m.experts_per_token)
    rows = rows * group_routing(work, tp=lay.tp, etp=lay.etp)[1]
    rows = rows * expert_load(work, ep=lay.ep)
    local = np.maximum(np.divide(m.num_experts, lay.ep), 1.0)
    size = np.divide(m.moe_ffn_hidden_size, lay.etp)
    per_expert = rows / local
    common = {
        "flops_per_s": rate.linear_flops_per_s * eff.grouped_matmul,
        "bytes_per_s": rate.bytes_per_s,
        "unhidden": eff.matmul_unhidden,
        "input_bytes": np.asarray(work.matmul_bits) / 8.0,
    }
    gates = matrices_per_mlp(m) - 1
    up = {"m": per_expert, "n": gates * size, "k": m.hidden_size}
    down = {"m": per_expert, "n": m.hidden_size, "k": size}
    one = sum(gemm.matmul_s(**s, **common) / _shape_factor(cluster, **s) for s in (up, down))
    both = local * one + 2.0 * eff.kernel_s  # one kernel for all experts
    return both * num_moe_layers(m) / np.maximum(m.num_layers, 1.0)


def masks_forward_s(work: Workload, lay: Layouts, rate: Rates, tokens: Numeric) -> Numeric:
    """Matmuls with one-hot masks that bring tokens to experts of fixed capacity and back, mean over
    layers: [s, h] with [s, experts x capacity], where the capacities of a sequence add up to
    k x s x the capacity factor, so that they cost as the square of its length (GShard,
    arXiv:2006.16668, section 3.2; AI-Hypercomputer/maxtext: src/MaxText/layers/moe.py,
    dense_matmul, "BSM,BSEC -> EBCM" and "EBCM,BSEC -> BSM", and generate_masks)."""
    m = work.model
    rows = np.multiply(m.experts_per_token, work.capacity_factor) * work.seq_len / lay.cp
    flops = 2 * 2 * tokens / lay.tp * rows * np.asarray(m.hidden_size, dtype=float)
    masks = np.where(work.routes_by_masks, flops, 0.0) / rate.head_flops_per_s
    return masks * num_moe_layers(m) / np.maximum(m.num_layers, 1.0)


def dense_s(
    work: Workload, lay: Layouts, cluster: Cluster, rate: Rates, eff: Efficiency, tokens: Numeric
) -> MatmulSeconds:
    """Seconds of the dense matmuls; their gradients take as long each, but where shapes were
    measured, which tell them apart."""
    linear = {
        "m": tokens,
        "flops_per_s": rate.linear_flops_per_s,
        "bytes_per_s": rate.bytes_per_s,
        "unhidden": eff.matmul_unhidden,
        "input_bytes": np.asarray(work.matmul_bits) / 8.0,
        "kernel_s": eff.kernel_s,
    }
    forward: Numeric = 0.0
    of_input: Numeric = 0.0
    of_weight: Numeric = 0.0
    for n, k, share in _matmuls(work, lay):
        idle = gemm.wave_share(m=tokens, n=n, multiprocessors=cluster.multiprocessors)
        one = share * gemm.matmul_s(n=n, k=k, idle=eff.wave * idle, **linear)
        if len(cluster.matmul_weights):
            forward = forward + one / _shape_factor(cluster, m=tokens, n=n, k=k)
            of_input = of_input + one / _shape_factor(cluster, m=tokens, n=k, k=n)
            of_weight = of_weight + one / _shape_factor(cluster, m=n, n=k, k=tokens)
        else:
            forward = of_input = of_weight = forward + one
    return MatmulSeconds(forward=forward, of_input=of_input, of_weight=of_weight)


def head_forward_s(
    work: Workload, lay: Layouts, cluster: Cluster, rate: Rates, eff: Efficiency, tokens: Numeric
) -> Numeric:
    """Seconds of the matmul to the vocabulary."""
    vocab = np.divide(work.model.vocab_size, lay.tp)
    head = gemm.matmul_s(
        m=tokens,
        n=vocab,
        k=work.model.hidden_size,
        flops_per_s=rate.head_flops_per_s,
        bytes_per_s=rate.bytes_per_s,
        unhidden=eff.matmul_unhidden,
        kernel_s=eff.kernel_s,
    )
    return head / _shape_factor(cluster, m=tokens, n=vocab, k=work.model.hidden_size)
