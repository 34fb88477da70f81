"""Computation time of one layer and one micro-batch, by operator, forward and backward.

Backward repeats each matmul twice (gradient of the input, gradient of the weight); frozen
weights need only the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.layout.layouts import Layouts
from core.layout.packing import attended_length
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.layer_memory import tokens_per_rank
from core.model import state_space
from core.model.transformer import (
    attention_output_size,
    attention_score_flops_per_token,
    query_size,
)
from core.numeric import Numeric
from core.time import attention, indexed, matmuls, memory_bound
from core.time.rates import Rates, rates


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


def layer_seconds(work: Workload, lay: Layouts, cluster: Cluster, eff: Efficiency) -> LayerSeconds:
    """Seconds of one layer, mean over the layers, for one micro-batch on one GPU."""
    rate = rates(work, cluster, eff)
    tokens = tokens_per_rank(work, lay)
    dense = matmuls.dense_s(work, lay, cluster, rate, eff, tokens)
    # A frozen weight needs no gradient; an adapter's own matmuls are small, its passes are not.
    frozen = np.asarray(work.adapters)
    experts = matmuls.experts_forward_s(work, lay, cluster, rate, eff, tokens)
    masks = matmuls.masks_forward_s(work, lay, rate, tokens)
    attended = attended_tokens(work)
    attention_s = attention_forward_s(work, lay, rate, eff, tokens, attended)
    # Chunked scans run on the matrix units, about as well as attention does.
    scan_flops = state_space.scan_flops_per_token(work.model) / np.maximum(work.model.num_layers, 1)
    scan_s = scan_flops * tokens / lay.tp / rate.attention_flops_per_s
    moved = memory_bound.bytes_per_token(work, lay, cluster, eff, attended=attended)
    weights = memory_bound.weights_of_layer(work, lay)
    expand_s = memory_bound.expand_s(work, weights=weights, bytes_per_s=rate.bytes_per_s)
    head = matmuls.head_forward_s(work, lay, cluster, rate, eff, tokens)
    loss_s = memory_bound.loss_s(work, lay, eff, tokens=tokens, bytes_per_s=rate.bytes_per_s)
    return LayerSeconds(
        matmul_forward=dense.forward,
        matmul_backward=dense.of_input + np.where(frozen, 0.0, dense.of_weight),
        experts_forward=experts + masks,
        # The mask of the way there has no gradient, that of the way back has one.
        experts_backward=experts * np.where(frozen, 1.0, 2.0) + 1.5 * masks,
        attention_forward=attention_s + scan_s,
        attention_backward=attention.backward_s(
            forward_s=attention_s, relative_rate=eff.attention_backward
        )
        + attention.BACKWARD_FLOPS * scan_s,
        memory_bound_forward=tokens * moved.forward / rate.bytes_per_s + expand_s,
        memory_bound_backward=tokens * moved.backward / rate.bytes_per_s
        + expand_s
        + memory_bound.summed_gradient_s(work, lay, weights=weights, bytes_per_s=rate.bytes_per_s)
        + indexed.bias_gradient_s(work, lay, eff, tokens=tokens),
        head=head * np.where(frozen, 2.0, 3.0) + loss_s,
    )


def attended_tokens(work: Workload) -> Numeric:
    """Length of the sequences over which attention runs: documents apart, or all of a sequence
    where no fused kernel knows their ends."""
    apart = attended_length(seq_len=work.seq_len, document_tokens=work.document_tokens)
    return np.where(work.unfused_attention, work.seq_len, apart)


def attention_forward_s(
    work: Workload,
    lay: Layouts,
    rate: Rates,
    eff: Efficiency,
    tokens: Numeric,
    attended: Numeric,
) -> Numeric:
    """Seconds of attention forward, mean over the layers; unfused it computes the masked half,
    too."""
    m = work.model
    unfused = np.asarray(work.unfused_attention, dtype=float)
    score_flops = attention_score_flops_per_token(m, attended) / np.maximum(m.num_layers, 1.0)
    head_dim = (query_size(m) + attention_output_size(m)) / (2 * np.asarray(m.num_attention_heads))
    return attention.forward_s(
        flops=score_flops * (1 + unfused) * tokens / lay.tp,
        flops_per_s=rate.attention_flops_per_s,
        head_dim=head_dim,
        half_head_dim=eff.attention_half_head_dim,
        unaligned_slowdown=eff.unaligned_slowdown,
        seq_len=attended,
        half_tokens=eff.attention_half_tokens,
    )
