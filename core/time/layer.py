"""Computation time of one layer and one micro-batch, by operator, forward and backward.

Backward repeats each matmul twice (gradient of the input, gradient of the weight); frozen
weights need only the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.layout.layouts import RECOMPUTE, Layouts
from core.layout.packing import attended_length
from core.layout.precision import matmul_speedup
from core.layout.sharding import column, held_gradient_bytes
from core.layout.workload import Workload, adapter_passes, buffered_load, expert_load, group_routing
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.memory import tokens_per_rank
from core.model import state_space
from core.model.adapter_passes import moved_bytes_per_token
from core.model.transformer import (
    attention_output_size,
    attention_score_flops_per_token,
    attention_share,
    is_mla,
    kv_size,
    layer_params,
    matrices_per_mlp,
    num_dense_mlp_layers,
    num_moe_layers,
    query_size,
    routed_expert_params,
)
from core.numeric import Bools, Numeric
from core.time import attention, gemm, indexed, kernels, measured_shapes

MEASURED_YEARS = (2021.0, 2026.7)  # years of the software of published runs: no trend beyond them


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Achieved rates of one GPU."""

    linear_flops_per_s: Numeric  # matmuls of linear layers, at the recipe's precision
    head_flops_per_s: Numeric  # 16-bit matmul: LM head, router
    attention_flops_per_s: Numeric
    bytes_per_s: Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSeconds:
    """One layer and micro-batch, mean over the layers. `head` is the whole LM head and loss."""

    matmul_forward: Numeric
    matmul_backward: Numeric
    experts_forward: Numeric
    experts_backward: Numeric
    attention_forward: Numeric
    attention_backward: Numeric
    memory_bound_forward: Numeric
    memory_bound_backward: Numeric
    head: Numeric


def decimal_year(date: str) -> float:
    """Decimal year of YYYY-MM, YYYY (its middle) or a range (its beginning); for '' the newest
    measured.

    >>> decimal_year("2024-07")
    2024.5416666666667
    """
    year, month = date[:4], date[5:7]
    if not year.isdigit():
        return MEASURED_YEARS[1]
    known = month.isdigit() and 1 <= int(month) <= 12  # not a range of years
    return float(year) + ((float(month) - 0.5) / 12 if known else 0.5)


def is_since(software_year: Numeric, since: str) -> Numeric:
    """Whether software of that year has a feature that stacks have `since` a date, 'always' or
    never ('').

    >>> bool(is_since(2022.5, "2023-01")), bool(is_since(2022.5, "always"))
    (False, True)
    """
    if since in ("", "always"):
        return np.full_like(np.asarray(software_year, dtype=float), since == "always", dtype=bool)
    return np.asarray(software_year) >= decimal_year(since)


def software_factor(software_year: Numeric, per_year: Numeric) -> Numeric:
    """Speed of the kernels of this year over those of 2024, the middle of the measurements."""
    return np.exp(per_year * (np.clip(software_year, *MEASURED_YEARS) - 2024.0))


def rates(work: Workload, cluster: Cluster, eff: Efficiency) -> Rates:
    """Peak times ceiling times the fraction that software reaches. NaN: precision not supported."""
    peak = np.asarray(cluster.peak_flops_per_s)
    software = software_factor(work.software_year, eff.software_per_year)
    power = np.asarray(cluster.power_share) ** eff.power_exponent
    sixteen = peak * cluster.ceiling * eff.matmul * software * power
    speedup = matmul_speedup(
        matmul_bits=work.matmul_bits,
        fp8_ratio=cluster.fp8_ratio,
        fp4_ratio=cluster.fp4_ratio,
        fp8_fraction=eff.fp8_of_peak_ratio,
        fp4_fraction=eff.fp4_of_peak_ratio,
    )
    return Rates(
        linear_flops_per_s=sixteen * speedup,
        head_flops_per_s=sixteen,
        attention_flops_per_s=peak
        * (eff.attention_forward * eff.attention_in_step * software * power)
        * (1 + eff.fast_exponentials * np.asarray(cluster.fast_exponentials))
        * np.where(work.flash2, eff.flash2 ** np.asarray(cluster.newer_than_flash2), 1.0)
        * np.asarray(cluster.attention_factor),
        bytes_per_s=np.asarray(cluster.memory_bytes_per_s) * eff.memory * software,
    )


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


def _expert_forward_s(
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


def _mask_forward_s(work: Workload, lay: Layouts, rate: Rates, tokens: Numeric) -> Numeric:
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


def layer_seconds(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> LayerSeconds:
    """Seconds of one layer, mean over the layers, for one micro-batch on one GPU."""
    m, rate = work.model, rates(work, cluster, eff)
    tokens = tokens_per_rank(work, lay)
    linear = {
        "m": tokens,
        "flops_per_s": rate.linear_flops_per_s,
        "bytes_per_s": rate.bytes_per_s,
        "unhidden": eff.matmul_unhidden,
        "input_bytes": np.asarray(work.matmul_bits) / 8.0,
        "kernel_s": eff.kernel_s,
    }
    matmul: Numeric = 0.0
    of_input: Numeric = (
        0.0  # gradients, where measured shapes distinguish them from the forward pass
    )
    of_weight: Numeric = 0.0
    for n, k, share in _matmuls(work, lay):
        idle = gemm.wave_share(m=tokens, n=n, multiprocessors=cluster.multiprocessors)
        one = share * gemm.matmul_s(n=n, k=k, idle=eff.wave * idle, **linear)
        if len(cluster.matmul_weights):
            matmul = matmul + one / _shape_factor(cluster, m=tokens, n=n, k=k)
            of_input = of_input + one / _shape_factor(cluster, m=tokens, n=k, k=n)
            of_weight = of_weight + one / _shape_factor(cluster, m=n, n=k, k=tokens)
        else:
            matmul = of_input = of_weight = matmul + one
    # A frozen weight needs no gradient; an adapter's own matmuls are small, its passes are not.
    frozen = np.asarray(work.adapters)
    matmul_backward = of_input + np.where(frozen, 0.0, of_weight)
    backward = np.where(frozen, 1.0, 2.0)
    experts = _expert_forward_s(work, lay, cluster, rate, eff, tokens)
    masks = _mask_forward_s(work, lay, rate, tokens)

    unfused = np.asarray(work.unfused_attention, dtype=float)
    apart = attended_length(seq_len=work.seq_len, document_tokens=work.document_tokens)
    attended = np.where(work.unfused_attention, work.seq_len, apart)
    score_flops = attention_score_flops_per_token(m, attended) / np.maximum(m.num_layers, 1.0)
    flops = score_flops * (1 + unfused) * tokens / lay.tp  # unfused computes the masked half too
    head_dim = (query_size(m) + attention_output_size(m)) / (2 * np.asarray(m.num_attention_heads))
    # Chunked scans run on the matrix units, about as well as attention does.
    scan_flops = state_space.scan_flops_per_token(m) / np.maximum(m.num_layers, 1.0)
    scan_s = scan_flops * tokens / lay.tp / rate.attention_flops_per_s
    attention_s = attention.forward_s(
        flops=flops,
        flops_per_s=rate.attention_flops_per_s,
        head_dim=head_dim,
        half_head_dim=eff.attention_half_head_dim,
        unaligned_slowdown=eff.unaligned_slowdown,
        seq_len=attended,
        half_tokens=eff.attention_half_tokens,
    )

    parallel = np.where(np.asarray(lay.sequence_parallel) > 0, lay.tp, 1.0)
    moved = kernels.outside_tp_bytes_per_token(m) / parallel
    inside = kernels.inside_tp_bytes_per_token(m) + state_space.scan_bytes_per_token(m)
    biases = np.where(work.splits_expert_biases, kernels.expert_bias_bytes_per_token(m), 0.0)
    # Buffers of fixed size are passed over whole: by the activation, and by the permutation of what
    # arrived, one of two; the other is of what is sent.
    room = buffered_load(work, ep=lay.ep)
    room = np.where(room > expert_load(work, ep=lay.ep), room, 1.0)
    inside = inside + (room - 1) * kernels.activated_bytes_per_token(m)
    moved = (moved + (inside + biases) / lay.tp) * eff.elementwise
    moved = np.where(work.compiled, eff.compiled, 1.0) * moved
    ways = group_routing(work, tp=lay.tp, etp=lay.etp)[0] / lay.tp
    permuted = _permutation(work, eff)
    permuted = np.where(room > 1, (permuted + eff.permutation * room) / 2, permuted)
    moved = moved + permuted * kernels.permuted_bytes_per_token(m) * ways
    moved = moved + unfused * kernels.score_matrix_bytes_per_token(m, work.seq_len) / lay.tp
    # A quantised base is expanded to 16 bits before each use: read it, write it, read it.
    expanded = np.where(np.asarray(work.weight_bytes) < 2, work.weight_bytes + 4.0, 0.0)
    held = layer_params(m) / lay.tp + routed_expert_params(m) / np.multiply(lay.ep, lay.etp)
    weights = held / np.maximum(m.num_layers, 1.0)
    expand_s = expanded * weights * np.asarray(work.adapters) / rate.bytes_per_s
    expand_s = expand_s + np.multiply(work.quantised_weight_bytes, weights) / rate.bytes_per_s
    on_chip = np.asarray(cluster.elementwise_factor) * kernels.onchip_factor(
        memory_bytes_per_s=cluster.memory_bytes_per_s,
        multiprocessors=cluster.multiprocessors,
        onchip=eff.onchip,
    )
    eager_in, eager_back = _more_of_norms(work, lay, outside=parallel)
    # Half of the passes over scores are those of matmuls, which no issue slots bind.
    blocks = _runs_by_blocks(work, cluster) * kernels.score_blocks_bytes_per_token(m, attended)
    blocks = blocks / lay.tp
    moved_back = (kernels.BACKWARD_BYTES * moved + eager_back) * on_chip
    moved_back = moved_back + kernels.BACKWARD_BYTES * blocks
    moved = (moved + eager_in) * on_chip + blocks
    passes_in, passes_back = _adapter_bytes(work, lay, eff)
    cast = work.quantised_bytes * kernels.quantised_elements_per_token(m) / lay.tp
    vocab = np.divide(m.vocab_size, lay.tp)
    head = gemm.matmul_s(
        m=tokens,
        n=vocab,
        k=m.hidden_size,
        flops_per_s=rate.head_flops_per_s,
        bytes_per_s=rate.bytes_per_s,
        unhidden=eff.matmul_unhidden,
        kernel_s=eff.kernel_s,
    )
    head = head / _shape_factor(cluster, m=tokens, n=vocab, k=m.hidden_size)
    # A chunk's logits never leave for a copy. A compiled loss reads 16-bit logits in forward, reads
    # them and writes their gradient in backward: 6 bytes, one pass of logits_bytes.
    passes = np.where(work.compiled_loss, 1.0, np.where(work.chunked_loss, 2.0, 3.0))
    ranks = np.where(work.whole_logits, 1.0, lay.tp)
    other = np.isnan(work.loss_bytes) | work.compiled_loss | work.chunked_loss
    loss = np.where(other, eff.logits_bytes * passes, work.loss_bytes)
    loss = loss * np.multiply(tokens, m.vocab_size) / ranks / rate.bytes_per_s
    return LayerSeconds(
        matmul_forward=matmul,
        matmul_backward=matmul_backward,
        experts_forward=experts + masks,
        # The mask of the way there has no gradient, that of the way back has one.
        experts_backward=experts * backward + 1.5 * masks,
        attention_forward=attention_s + scan_s,
        attention_backward=attention.backward_s(
            forward_s=attention_s, relative_rate=eff.attention_backward
        )
        + attention.BACKWARD_FLOPS * scan_s,
        memory_bound_forward=tokens * (moved + cast + passes_in) / rate.bytes_per_s + expand_s,
        memory_bound_backward=tokens * (moved_back + cast + passes_back) / rate.bytes_per_s
        + expand_s
        + _summed_gradient_s(work, lay, weights=weights, bytes_per_s=rate.bytes_per_s)
        + indexed.bias_gradient_s(work, lay, eff, tokens=tokens),
        head=head * np.where(work.adapters, 2.0, 3.0) + loss,
    )


def _runs_by_blocks(work: Workload, cluster: Cluster) -> Bools:
    """Whether attention runs block by block: as the software says, or where the one kernel of a TPU
    takes no such heads."""
    on_tpu = np.isnan(np.asarray(cluster.multiprocessors, dtype=float))
    takes = np.asarray(work.model.head_dim) % work.fused_heads_of == 0
    whole = np.asarray(work.unfused_attention, dtype=bool)  # the score matrix is written at once
    return ~whole & (np.asarray(work.blockwise_attention, dtype=bool) | (on_tpu & ~takes))


def _permutation(work: Workload, eff: Efficiency) -> Numeric:
    """Traffic of routing tokens to experts over the count: of kernels made for it, of dispatchers
    that permute as they send, or of indexing operators one after the other."""
    by_operators = np.where(work.permutes_by_kernel, kernels.KERNEL_PERMUTATION, eff.permutation)
    as_sent = eff.permutation * np.asarray(eff.fused_permutation)
    return np.where(work.deduplicates, as_sent, by_operators)


def _summed_gradient_s(
    work: Workload, lay: Layouts, *, weights: Numeric, bytes_per_s: Numeric
) -> Numeric:
    """Seconds in which the gradients of a micro-batch are added to the sum of the ones before,
    beyond the 16-bit output of their matmuls: the sum is read and written by the matmul in place
    of it (Megatron-LM: gradient_accumulation_fusion), or after it, which writes and reads the
    output, too. The first one has nothing to add to, and a frozen weight no gradient. Sharded
    gradients are reduced first: what their copies move is taken for that of the fused sum."""
    kept = held_gradient_bytes(strategy=lay.strategy, gradient_bytes=work.gradient_bytes)
    later = 1 - 1 / np.maximum(np.asarray(lay.num_microbatches, dtype=float), 1.0)
    whole = column(lay.strategy, "shards_gradients") == 0
    apart = np.where(whole & ~np.asarray(work.fuses_gradient_sums), 4.0, 0.0)
    moved = np.where(work.adapters, 0.0, (2.0 * kept - 2.0 + apart) * later)
    return moved * weights / bytes_per_s


def _adapter_bytes(work: Workload, lay: Layouts, eff: Efficiency) -> tuple[Numeric, Numeric]:
    """Bytes per layer and token, forward and backward, of adapters' passes over memory: copies and
    sums, which the memory alone bounds. A compiler leaves the share that it leaves of others."""
    passes = adapter_passes(work)
    if passes is None:
        return 0.0, 0.0
    forward, backward = moved_bytes_per_token(work.model, passes, tp=lay.tp)
    left = np.where(work.compiled, eff.compiled, 1.0)
    return left * forward, left * backward


def _more_of_norms(work: Workload, lay: Layouts, *, outside: Numeric) -> tuple[Numeric, Numeric]:
    """Bytes per layer and token, forward and backward, that norms and rotation move beyond one
    16-bit kernel each, where no compiler fuses them: those of every operator, or of fp32 copies."""
    plain = np.where(work.compiled, 0.0, 1.0)
    forward: Numeric = 0.0
    backward: Numeric = 0.0
    if np.any(work.eager_norms):
        both = kernels.eager_bytes_per_token(work.model, outside=outside, tp=lay.tp)
        eager = plain * np.asarray(work.eager_norms)
        forward, backward = eager * both[0], eager * both[1]
    if np.any(work.fp32_norms):
        # Layers of which nothing else is computed again.
        kept = np.where(
            np.equal(lay.recompute, RECOMPUTE.index("full")),
            1.0 - np.asarray(work.recomputed_layers),
            np.equal(lay.recompute, RECOMPUTE.index("none")),
        )
        both = kernels.fp32_norm_bytes_per_token(work.model, outside=outside, again=kept)
        copied = plain * np.asarray(work.fp32_norms)
        forward, backward = forward + copied * both[0], backward + copied * both[1]
    return forward, backward
