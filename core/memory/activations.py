"""Activation memory of a transformer under tensor, sequence and pipeline parallelism.

[K23] Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models",
      MLSys 2023, arXiv:2205.05198, section 4: the operator list that is counted here for
      grouped-query attention, gated MLPs and fused attention (no score matrix, no dropout).
[M26] Megatron-LM, megatron/core/transformer/transformer_config.py, recompute_modules.

Validity: 16-bit activations. All sizes are BYTES, not element counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.layout.layouts import RECOMPUTE
from core.model import state_space
from core.model.transformer import (
    Transformer,
    attention_output_size,
    attention_share,
    is_mla,
    is_moe,
    kv_size,
    num_dense_mlp_layers,
    num_moe_layers,
    query_size,
)
from core.numeric import Numeric, kept_for_last

NONE, SELECTIVE, NORM_ACT, MLP, FULL, OFFLOAD = (float(RECOMPUTE.index(r)) for r in RECOMPUTE)
OFFLOADED_LAYERS = 2.0  # layers whose activations are on their way to or from the host


@kept_for_last
def outside_tp_bytes_per_token(model: Transformer) -> Numeric:
    """Kept per layer and token, split by sequence parallelism only: norm inputs and outputs."""
    return 2 * 2 * np.multiply(model.norms_per_layer, model.hidden_size)


def inside_tp_bytes_per_token(
    model: Transformer, expert_load: Numeric = 1.0, routed_copies: Numeric = 1.0
) -> Numeric:
    """Kept per layer and token, split by tensor parallelism: q, k, v, the heads' output and
    its log-sum-exp, the MLP's (gate,) up and activated values, and `routed_copies` of each
    token that goes to an expert (dispatched, permuted, weighted); mean over layers."""
    attention = 2 * (query_size(model) + kv_size(model) + attention_output_size(model))
    statistics = 4 * np.asarray(model.num_attention_heads)
    tensors = np.where(model.gated_mlp, 3.0, 2.0)
    dense = 2 * tensors * model.ffn_hidden_size
    routed = np.multiply(model.experts_per_token, expert_load)
    active = np.add(routed, model.num_shared_experts)
    routed_input = 2 * routed_copies * np.multiply(routed, model.hidden_size)
    experts = active * 2 * tensors * model.moe_ffn_hidden_size + routed_input
    layers = np.maximum(model.num_layers, 1.0)
    sparse = np.where(is_moe(model), num_moe_layers(model) * experts, 0.0)
    mixer = (attention + statistics) * attention_share(model)
    mixer = mixer + state_space.kept_bytes_per_token(model)
    return mixer + (num_dense_mlp_layers(model) * dense + sparse) / layers


def layer_bytes(
    model: Transformer,
    *,
    tokens: Numeric,
    tp: Numeric,
    sequence_parallel: Numeric,
    kept_scores_of: Numeric = 0.0,
    expert_load: Numeric = 1.0,
    routed_copies: Numeric = 1.0,
) -> Numeric:
    """Bytes one layer keeps for backward without recompute, per GPU and micro-batch. [K23]

    `tokens` of one micro-batch on one rank of a tensor-parallel group (after cp).
    `kept_scores_of` is the sequence length where attention is not fused, which keeps softmax,
    dropout mask and dropped-out scores: 5 a s bytes a token [K23, section 4.1]; 0 if fused.
    """
    outside = outside_tp_bytes_per_token(model) / np.where(np.asarray(sequence_parallel) > 0, tp, 1)
    inside = inside_tp_bytes_per_token(model, expert_load, routed_copies)
    scores = 5 * np.multiply(model.num_attention_heads, kept_scores_of) * attention_share(model)
    return tokens * (outside + (inside + scores) / tp)


def input_bytes(
    model: Transformer, *, tokens: Numeric, tp: Numeric, sequence_parallel: Numeric
) -> Numeric:
    """Bytes of the input of a layer, which is all that full recompute keeps of the layer."""
    shards = np.where(np.asarray(sequence_parallel) > 0, tp, 1)
    return 2 * np.multiply(tokens, model.hidden_size) / shards


def module_bytes_per_token(
    model: Transformer, expert_load: Numeric = 1.0, routed_copies: Numeric = 1.0
) -> tuple[Numeric, Numeric, Numeric]:
    """Bytes per layer and token that are not kept where modules are computed again: outputs of
    norms that stand alone (before experts and before latent attention), split by sequence
    parallelism; activated values of routed experts and expanded latents, split by tensor
    parallelism; and all of the MLP or the experts but their input. [M26]"""
    layers = np.maximum(model.num_layers, 1.0)
    moe, dense = num_moe_layers(model) / layers, num_dense_mlp_layers(model) / layers
    norms = np.where(is_mla(model), 1.0, 0.0) + moe
    routed = np.multiply(model.experts_per_token, expert_load)
    held = query_size(model) + kv_size(model)
    latents = np.add(model.q_lora_rank, model.kv_lora_rank) + np.asarray(model.qk_rope_head_dim)
    expanded = np.where(is_mla(model), np.maximum(held - latents, 0.0), 0.0)
    light = 2 * (moe * routed * model.moe_ffn_hidden_size + expanded * attention_share(model))
    tensors = np.where(model.gated_mlp, 3.0, 2.0)
    experts = np.add(routed, model.num_shared_experts) * tensors * model.moe_ffn_hidden_size
    experts = experts + routed_copies * routed * model.hidden_size
    mlp = 2 * (dense * tensors * model.ffn_hidden_size + moe * experts)
    return norms * 2 * model.hidden_size, light, mlp


def matmul_inputs_per_token(
    model: Transformer, expert_load: Numeric = 1.0
) -> tuple[Numeric, Numeric, Numeric]:
    """Kept elements per layer and token that only matmuls read: outputs of norms, split by sequence
    parallelism, but before experts, where router and dispatch read them, too; activated values and
    one copy of what goes to each expert, split by tensor parallelism; and, likewise, what attention
    puts out, which its own backward pass reads as well."""
    layers = np.maximum(model.num_layers, 1.0)
    moe, dense = num_moe_layers(model) / layers, num_dense_mlp_layers(model) / layers
    routed = np.multiply(model.experts_per_token, expert_load)
    experts = np.add(routed, model.num_shared_experts) * model.moe_ffn_hidden_size
    attention = attention_share(model)
    return (
        model.hidden_size * (attention + dense),
        dense * model.ffn_hidden_size + moe * (experts + routed * model.hidden_size),
        attention * attention_output_size(model),
    )


def share_of_parts(
    model: Transformer, *, qkv: Numeric, core: Numeric, out: Numeric, up: Numeric
) -> Numeric:
    """Share of what a layer keeps beside its input that these parts are, each 1 or 0: queries, keys
    and values; the attention core's output and statistics; the output projection's output; the
    first matmuls of a dense MLP."""
    heads = 2 * np.asarray(attention_output_size(model)) + 4 * np.asarray(model.num_attention_heads)
    attention = qkv * 2 * np.add(query_size(model), kv_size(model)) + core * heads
    attention = (attention + out * 2 * np.asarray(model.hidden_size)) * attention_share(model)
    first = 2 * np.where(model.gated_mlp, 2.0, 1.0) * model.ffn_hidden_size
    dense = up * first * num_dense_mlp_layers(model) / np.maximum(model.num_layers, 1.0)
    whole = outside_tp_bytes_per_token(model) + inside_tp_bytes_per_token(model)
    return (attention + dense) / np.maximum(whole - 2 * np.asarray(model.hidden_size), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKept:
    """Bytes that one layer keeps of one micro-batch."""

    whole: Numeric  # all that its backward pass needs
    kept: Numeric  # of `needed`, what is held from forward to backward; the rest is recomputed


def layer_kept(
    model: Transformer,
    *,
    tokens: Numeric,
    tp: Numeric,
    sequence_parallel: Numeric,
    recompute: Numeric,
    selective_kept: Numeric,
    copies: Numeric = 1.0,
    kept_scores_of: Numeric = 0.0,
    expert_load: Numeric = 1.0,
    routed_copies: Numeric = 1.0,
    more: Numeric = 0.0,
    recomputed_layers: Numeric = 1.0,
) -> LayerKept:
    """What one layer keeps under a recompute mode.

    The input is kept once by every mode. `copies` is what a stack keeps of the rest over the
    operator count; selective recompute drops the score matrix where there is one, else it
    keeps `selective_kept` of the rest. Named modules drop what `module_bytes_per_token` counts.
    `more` are bytes that are kept beside it. Full recompute is of the share
    `recomputed_layers`: the result is the mean of the layers.
    """
    shape = {"tokens": tokens, "tp": tp, "sequence_parallel": sequence_parallel}
    entry = input_bytes(model, **shape)
    fused = layer_bytes(model, **shape, expert_load=expert_load, routed_copies=routed_copies)
    inner = copies * (fused - entry) + more
    heads = np.multiply(model.num_attention_heads, attention_share(model))
    scores = 5 * heads * kept_scores_of * tokens / tp
    whole = entry + inner + scores
    share = np.where(np.asarray(kept_scores_of) > 0, 1.0, selective_kept)
    kind = np.asarray(recompute)
    full = entry + (1 - np.asarray(recomputed_layers)) * (whole - entry)
    kept = np.where(kind >= FULL, full, np.where(kind == SELECTIVE, entry + share * inner, whole))
    if np.any((kind == NORM_ACT) | (kind == MLP)):
        norms, light, mlp = module_bytes_per_token(model, expert_load, routed_copies)
        shards = np.where(np.asarray(sequence_parallel) > 0, tp, 1)
        less = np.where(kind == MLP, mlp / tp, norms / shards + light / tp)
        less = np.minimum(copies * tokens * less, inner)
        kept = np.where((kind == NORM_ACT) | (kind == MLP), whole - less, kept)
    return LayerKept(whole=whole, kept=kept)


def kept_bytes(
    layer: LayerKept,
    *,
    recompute: Numeric,
    layers_in_flight: Numeric,
    offloaded: Numeric = 0.0,
) -> Numeric:
    """Bytes that all layers in flight keep; of the offloaded share, only a few layers in
    transfer."""
    share = np.where(np.asarray(recompute) == OFFLOAD, 1.0, offloaded)
    held = np.minimum(layers_in_flight, (1 - share) * layers_in_flight + OFFLOADED_LAYERS)
    return np.where(share > 0, held, layers_in_flight) * layer.kept


def offloaded_bytes(
    model: Transformer,
    *,
    tokens: Numeric,
    tp: Numeric,
    sequence_parallel: Numeric,
    recompute: Numeric,
    selective_kept: Numeric,
    offloaded: Numeric,
    kept_scores_of: Numeric = 0.0,
) -> Numeric:
    """Bytes of one layer and micro-batch that go to the host and come back."""
    layer = layer_kept(
        model,
        tokens=tokens,
        tp=tp,
        sequence_parallel=sequence_parallel,
        recompute=recompute,
        selective_kept=selective_kept,
        kept_scores_of=kept_scores_of,
    )
    return np.where(np.asarray(recompute) == OFFLOAD, 1.0, offloaded) * layer.kept
