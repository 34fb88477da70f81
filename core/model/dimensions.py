"""Dimensions of a decoder, and how many layers of each type it has.

A layer is a mixer (attention, state space or linear attention) followed by an MLP (dense or
experts). With `num_mlp_layers` a layer is only one of the two, as in Nemotron-H; with
`ssm_beside_attention` a layer has both attention and a state space, in parallel, as in Falcon-H1;
without any MLP (`ffn_hidden_size` 0) a layer is only a mixer, as in Mamba. Every field may be a
numpy column, so that a table of different models is one `Transformer`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from core.numeric import Bools, Numeric, kept_for_last


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """Dimensions of a decoder. A zero switches a feature off."""

    num_layers: Numeric
    hidden_size: Numeric
    ffn_hidden_size: Numeric  # of the dense MLP; 0: no layer has one
    num_attention_heads: Numeric
    num_kv_heads: Numeric
    head_dim: Numeric
    vocab_size: Numeric
    tied_embeddings: Bools = False
    gated_mlp: Bools = True
    qkv_bias: Bools = False
    linear_bias: Bools = False  # attention output, MLP, router (GPT-2/3); qkv_bias is separate
    norm_bias: Bools = False  # LayerNorm (weight and bias) instead of RMSNorm
    qk_norm: Bools = False
    norms_per_layer: Numeric = 2.0  # 4 in Gemma 2 and 3, 1 where a layer is a mixer or an MLP
    num_positions: Numeric = 0.0  # rows of a learned position embedding; 0: rotary
    alibi: Bools = False  # a bias on the scores instead of rotary positions
    sliding_window: Numeric = 0.0  # tokens a windowed layer looks back
    num_window_layers: Numeric = 0.0
    # Mixture of experts
    num_experts: Numeric = 0.0
    experts_per_token: Numeric = 0.0
    num_shared_experts: Numeric = 0.0
    moe_ffn_hidden_size: Numeric = 0.0
    num_dense_layers: Numeric = 0.0  # layers with the dense MLP although the model has experts
    # Multi-head latent attention
    q_lora_rank: Numeric = 0.0
    kv_lora_rank: Numeric = 0.0
    qk_nope_head_dim: Numeric = 0.0
    qk_rope_head_dim: Numeric = 0.0
    v_head_dim: Numeric = 0.0
    # Typed layers
    attention_gate: Bools = False  # attention's output times a sigmoid as wide as the queries
    num_mlp_layers: Numeric = 0.0  # layers that are only an MLP; 0: every layer has one
    num_ssm_layers: Numeric = 0.0  # Mamba-2, or Mamba-1 with an ssm_dt_rank
    ssm_inner_size: Numeric = 0.0
    ssm_state_size: Numeric = 0.0
    ssm_num_heads: Numeric = 0.0
    ssm_num_groups: Numeric = 0.0
    ssm_conv_size: Numeric = 0.0
    ssm_dt_rank: Numeric = 0.0
    ssm_beside_attention: Bools = False  # layers with a state space have attention, too
    num_linear_layers: Numeric = 0.0  # gated delta rule
    linear_num_key_heads: Numeric = 0.0
    linear_num_value_heads: Numeric = 0.0
    linear_key_head_dim: Numeric = 0.0
    linear_value_head_dim: Numeric = 0.0
    linear_conv_size: Numeric = 0.0
    linear_gate_rank: Numeric = 0.0  # of the gates' projections (Kimi Linear); 0: full, per head


def as_columns(models: list[Transformer]) -> Transformer:
    """Many models as one: each field a float64 column of shape (len(models),)."""
    columns: dict[str, Any] = {
        f.name: np.array([getattr(m, f.name) for m in models], dtype=float)
        for f in fields(Transformer)
    }
    return Transformer(**columns)


@kept_for_last
def is_mla(model: Transformer) -> Bools:
    """Whether attention is multi-head latent."""
    return np.asarray(model.kv_lora_rank) > 0


@kept_for_last
def is_moe(model: Transformer) -> Bools:
    """Whether some layers route tokens to experts."""
    return np.asarray(model.num_experts) > 0


@kept_for_last
def num_mixer_layers(model: Transformer) -> Numeric:
    """Layers with a mixer: all of them, unless some are only an MLP."""
    return np.subtract(model.num_layers, model.num_mlp_layers)


@kept_for_last
def num_attention_layers(model: Transformer) -> Numeric:
    """Layers whose mixer is attention."""
    instead = np.where(model.ssm_beside_attention, 0.0, model.num_ssm_layers)
    return np.subtract(num_mixer_layers(model), np.add(instead, model.num_linear_layers))


@kept_for_last
def attention_share(model: Transformer) -> Numeric:
    """Share of the layers whose mixer is attention."""
    return num_attention_layers(model) / np.maximum(model.num_layers, 1.0)


@kept_for_last
def num_layers_with_mlp(model: Transformer) -> Numeric:
    """Layers with an MLP, dense or experts."""
    alone = np.asarray(model.num_mlp_layers)
    has_mlp = (np.asarray(model.ffn_hidden_size) > 0) | is_moe(model)
    return np.where(alone > 0, alone, np.where(has_mlp, model.num_layers, 0.0))


@kept_for_last
def num_moe_layers(model: Transformer) -> Numeric:
    """Layers with routed experts."""
    sparse = np.subtract(num_layers_with_mlp(model), model.num_dense_layers)
    return np.where(is_moe(model), sparse, 0.0)


@kept_for_last
def num_dense_mlp_layers(model: Transformer) -> Numeric:
    """Layers with a dense MLP."""
    return np.subtract(num_layers_with_mlp(model), num_moe_layers(model))
