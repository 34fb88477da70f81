"""What of a forward pass backward repeats under each recompute mode, and its collectives.

[K23] Korthikanti et al., arXiv:2205.05198, section 5: selective recompute of the attention core.
[M26] Megatron-LM, megatron/core/transformer/transformer_config.py, recompute_modules: what each
      module computes again.
"""

from __future__ import annotations

from math import nan

import numpy as np

from core.layout.layouts import RECOMPUTE, Layouts
from core.machine.efficiency import Efficiency
from core.model.transformer import (
    Transformer,
    attention_matrix_params,
    attention_output_size,
    attention_score_flops_per_token,
    expert_matrix_params,
    forward_flops_per_token,
    head_flops_per_token,
    is_mla,
    is_moe,
    mlp_matrix_params,
    num_dense_mlp_layers,
    num_moe_layers,
)
from core.numeric import Bools, Numeric, kept_for_last
from core.time import kernels
from core.time.layer import LayerSeconds

SELECTIVE, NORM_ACT, MLP, FULL = (
    RECOMPUTE.index(r) for r in ("selective", "norm_act", "mlp", "full")
)
# Operators of a layer's forward pass, each one launch: two norms, projections, rotary, attention,
# output, gate and up, activation, down, residual. Repeated: attention; the norms and the
# activation; gate and up, the activation and down [M26].
OPERATORS, OF_CORE, OF_NORM_ACT, OF_MLP = 10, 1, 3, 3


def repeated_share(
    lay: Layouts,
    model: Transformer,
    one: LayerSeconds,
    eff: Efficiency,
    *,
    of_layers: Numeric = 1.0,
    matmuls: Numeric = nan,
    with_core: Bools = True,
) -> Numeric:
    """Share of the forward pass of a layer that backward repeats.

    Full: all but the last layer's, by measured runs, of the share `of_layers`. Selective: what was
    measured of a policy by operators, or the attention core where a stack means that [K23]. Norms
    and activations, and the MLP or the experts: by their own operators [M26]. Where a policy says
    which share of the `matmuls` selective recompute repeats, and whether the attention core: these,
    and all that is bound by memory.
    """
    forward_s = (
        one.matmul_forward + one.experts_forward + one.attention_forward + one.memory_bound_forward
    )
    core = one.attention_forward / forward_s
    selective = np.where(np.asarray(eff.selective_core) > 0, core, eff.selective_recompute)
    if np.any(np.isfinite(matmuls)):
        by_name = np.nan_to_num(matmuls) * (one.matmul_forward + one.experts_forward)
        by_name = by_name + np.where(with_core, one.attention_forward, 0.0)
        named = (by_name + one.memory_bound_forward) / forward_s
        selective = np.where(np.isfinite(matmuls), named, selective)
    light: Numeric = 0.0
    mlp: Numeric = 0.0
    kind = np.asarray(lay.recompute)
    if np.any((kind == NORM_ACT) | (kind == MLP)):
        light_s = one.memory_bound_forward * norm_act_traffic(model)
        light_s = light_s + one.matmul_forward * latent_matmuls(model)
        mlp_s = one.experts_forward + one.matmul_forward * mlp_matmuls(model)
        mlp_s = mlp_s + one.memory_bound_forward * mlp_traffic(model)
        light, mlp = light_s / forward_s, mlp_s / forward_s
    return np.where(
        kind >= FULL,
        eff.full_recompute * np.asarray(of_layers),
        np.select([kind == SELECTIVE, kind == NORM_ACT, kind == MLP], [selective, light, mlp], 0.0),
    )


def launched_share(recompute: Numeric, eff: Efficiency, *, of_layers: Numeric = 1.0) -> Numeric:
    """Share of the launches of a forward pass that backward repeats: of modules, their operators
    among those of a layer [M26]."""
    kind = np.asarray(recompute)
    core = OF_CORE / OPERATORS
    selective = np.where(np.asarray(eff.selective_core) > 0, core, eff.selective_recompute)
    modules = np.select(
        [kind == SELECTIVE, kind == NORM_ACT, kind == MLP],
        [selective, OF_NORM_ACT / OPERATORS, OF_MLP / OPERATORS], 0,
    )  # fmt: skip
    return np.where(kind >= FULL, eff.full_recompute * np.asarray(of_layers), modules)


def repeated_collectives(
    recompute: Numeric, model: Transformer, *, of_layers: Numeric = 1.0
) -> tuple[Numeric, Numeric, Numeric]:
    """Share of the forward pass's collectives that is repeated: of tensor, context and expert
    parallelism. The MLP has one of the two pairs of tensor parallelism, and all of the experts'."""
    full = np.where(np.asarray(recompute) >= FULL, of_layers, 0.0)
    mlp = np.where(np.asarray(recompute) == MLP, 1.0, 0.0)
    dense = np.where(is_moe(model), 0.0, 0.5)  # experts are not cut by tensor parallelism
    return full + mlp * dense, full, full + mlp


def repeated_flops_per_token(
    model: Transformer, seq_len: Numeric, recompute: Numeric, *, of_layers: Numeric = 1.0
) -> Numeric:
    """Model FLOPs per token that recompute repeats, which HFU counts: the layers' forward if full,
    the attention core if selective [K23], the matrices of MLPs and active experts; what norms and
    activations are is not counted."""
    kind = np.asarray(recompute)
    active = np.add(model.experts_per_token, model.num_shared_experts) * num_moe_layers(model)
    mlp = active * expert_matrix_params(model)
    mlp = 2 * (mlp + num_dense_mlp_layers(model) * mlp_matrix_params(model))
    layers = of_layers * (forward_flops_per_token(model, seq_len) - head_flops_per_token(model))
    core = attention_score_flops_per_token(model, seq_len)
    return np.select([kind >= FULL, kind == SELECTIVE, kind == MLP], [layers, core, mlp], 0.0)


@kept_for_last
def matmul_shares(model: Transformer) -> tuple[Numeric, Numeric, Numeric]:
    """Shares of a dense layer's matmuls: projections to queries, keys and values, that of the
    output of attention, and those of an MLP but the last."""
    attention, mlp = attention_matrix_params(model), mlp_matrix_params(model)
    whole = np.maximum(attention + mlp, 1.0)
    out = np.multiply(model.hidden_size, attention_output_size(model))
    last = np.multiply(model.hidden_size, model.ffn_hidden_size)
    return (attention - out) / whole, out / whole, (mlp - last) / whole


def _moe_share(model: Transformer) -> Numeric:
    return num_moe_layers(model) / np.maximum(model.num_layers, 1.0)


@kept_for_last
def _traffic(model: Transformer) -> Numeric:
    """Bytes per layer and token of all operators that are bound by memory."""
    return (
        kernels.outside_tp_bytes_per_token(model)
        + kernels.inside_tp_bytes_per_token(model)
        + kernels.permuted_bytes_per_token(model)
    )


@kept_for_last
def _activation_bytes(model: Transformer) -> tuple[Numeric, Numeric]:
    """Forward bytes of activation functions per layer and token: of dense MLPs with shared
    experts, and of routed experts."""
    tensors = np.where(model.gated_mlp, 3.0, 2.0)
    layers = np.maximum(model.num_layers, 1.0)
    each = 2 * tensors * np.asarray(model.moe_ffn_hidden_size) * _moe_share(model)
    dense = 2 * tensors * model.ffn_hidden_size * num_dense_mlp_layers(model) / layers
    return dense + each * model.num_shared_experts, each * model.experts_per_token


@kept_for_last
def norm_act_traffic(model: Transformer) -> Numeric:
    """Share of the memory-bound forward that the norms that stand alone and the experts'
    activation functions are. The norm before a dense MLP or attention is part of a matmul's
    kernel [M26]: it stands alone before experts and before latent attention."""
    norms = np.where(is_mla(model), 1.0, 0.0) + _moe_share(model)
    return (norms * 4 * model.hidden_size + _activation_bytes(model)[1]) / _traffic(model)


@kept_for_last
def mlp_traffic(model: Transformer) -> Numeric:
    """Share of the memory-bound forward that belongs to MLPs and experts, with routing."""
    dense, routed = _activation_bytes(model)
    return (dense + routed + kernels.permuted_bytes_per_token(model)) / _traffic(model)


@kept_for_last
def mlp_matmuls(model: Transformer) -> Numeric:
    """Share of the dense matmuls of a layer that belongs to MLPs and shared experts."""
    dense = mlp_matrix_params(model) * num_dense_mlp_layers(model)
    shared = expert_matrix_params(model) * model.num_shared_experts * num_moe_layers(model)
    mlp = (dense + shared) / np.maximum(model.num_layers, 1.0)
    return mlp / np.maximum(mlp + attention_matrix_params(model), 1.0)


@kept_for_last
def latent_matmuls(model: Transformer) -> Numeric:
    """Share of the dense matmuls of a layer that expands latents to queries, keys and values."""
    heads = np.asarray(model.num_attention_heads)
    query = np.add(model.qk_nope_head_dim, model.qk_rope_head_dim) * model.q_lora_rank
    pairs = np.add(model.qk_nope_head_dim, model.v_head_dim) * model.kv_lora_rank
    others = (1 - np.asarray(mlp_matmuls(model))) / np.maximum(attention_matrix_params(model), 1.0)
    return np.where(is_mla(model), heads * np.add(query, pairs) * others, 0.0)
