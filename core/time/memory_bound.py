"""Operators of one layer that memory bandwidth bounds: bytes per token, and seconds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.layout.layouts import RECOMPUTE, Layouts
from core.layout.sharding import column, held_gradient_bytes
from core.layout.workload import (
    Workload,
    adapter_passes,
    buffered_load,
    expert_load,
    group_routing,
    splits_sequence,
)
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.model import state_space
from core.model.adapter_passes import moved_bytes_per_token
from core.model.transformer import layer_params, routed_expert_params
from core.numeric import Bools, Numeric
from core.time import kernels


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Bytes per layer and token."""

    forward: Numeric
    backward: Numeric


def bytes_per_token(
    work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency, *, attended: Numeric
) -> Moved:
    """What operators other than matmuls and fused attention move, over `attended` tokens."""
    m = work.model
    unfused = np.asarray(work.unfused_attention, dtype=float)
    parallel = np.where(splits_sequence(work, lay) > 0, lay.tp, 1.0)
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
    return Moved(forward=moved + cast + passes_in, backward=moved_back + cast + passes_back)


def weights_of_layer(work: Workload, lay: Layouts) -> Numeric:
    """Parameters of one layer on one GPU, mean over the layers."""
    m = work.model
    held = layer_params(m) / lay.tp + routed_expert_params(m) / np.multiply(lay.ep, lay.etp)
    return held / np.maximum(m.num_layers, 1.0)


def expand_s(work: Workload, *, weights: Numeric, bytes_per_s: Numeric) -> Numeric:
    """Seconds of a quantised base, which is expanded to 16 bits before each use (read it, write it,
    read it), and of weights that are quantised."""
    expanded = np.where(np.asarray(work.weight_bytes) < 2, work.weight_bytes + 4.0, 0.0)
    of_base = expanded * weights * np.asarray(work.adapters) / bytes_per_s
    return of_base + np.multiply(work.quantised_weight_bytes, weights) / bytes_per_s


def loss_s(
    work: Workload, lay: Layouts, eff: Efficiency, *, tokens: Numeric, bytes_per_s: Numeric
) -> Numeric:
    """Seconds of the loss over the logits of one micro-batch.

    A chunk's logits never leave for a copy. A compiled loss reads 16-bit logits in forward, reads
    them and writes their gradient in backward: 6 bytes, one pass of `logits_bytes`.
    """
    passes = np.where(work.compiled_loss, 1.0, np.where(work.chunked_loss, 2.0, 3.0))
    ranks = np.where(work.whole_logits, 1.0, lay.tp)
    other = np.isnan(work.loss_bytes) | work.compiled_loss | work.chunked_loss
    moved = np.where(other, eff.logits_bytes * passes, work.loss_bytes)
    return moved * np.multiply(tokens, work.model.vocab_size) / ranks / bytes_per_s


def _runs_by_blocks(work: Workload, cluster: Cluster) -> Bools:
    """Whether attention runs block by block: where the one kernel of a TPU takes no such heads."""
    on_tpu = np.isnan(np.asarray(cluster.multiprocessors, dtype=float))
    takes = np.asarray(work.model.head_dim) % work.fused_heads_of == 0
    whole = np.asarray(work.unfused_attention, dtype=bool)  # the score matrix is written at once
    return ~whole & on_tpu & ~takes


def _permutation(work: Workload, eff: Efficiency) -> Numeric:
    """Traffic of routing tokens to experts over the count: of kernels made for it, of dispatchers
    that permute as they send, or of indexing operators one after the other."""
    by_operators = np.where(work.permutes_by_kernel, kernels.KERNEL_PERMUTATION, eff.permutation)
    as_sent = eff.permutation * np.asarray(eff.fused_permutation)
    return np.where(work.deduplicates, as_sent, by_operators)


def summed_gradient_s(
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
