"""Parameters and FLOPs of a model, by part, from its dimensions.

[N21] Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
      Megatron-LM", SC 2021, arXiv:2104.04473, section 5.1 and appendix.
[P22] Chowdhery et al., "PaLM", arXiv:2204.02311, appendix B: model FLOPs utilisation.
[D24] DeepSeek-AI, "DeepSeek-V2", arXiv:2405.04434, section 2.1: multi-head latent attention.

Conventions: a multiply-add is 2 FLOPs; causal attention is counted once (half of the square);
the LM head is counted, the embedding look-up is not; backward is twice forward.
The fields are in core/model/dimensions.py; state-space and linear-attention mixers are counted in
core/model/state_space.py. Functions of attention are per attention layer unless they say all
layers.
"""

from __future__ import annotations

import numpy as np

from core.model import state_space
from core.model.dimensions import Transformer as Transformer
from core.model.dimensions import as_columns as as_columns
from core.model.dimensions import attention_share as attention_share
from core.model.dimensions import is_mla as is_mla
from core.model.dimensions import is_moe as is_moe
from core.model.dimensions import num_attention_layers as num_attention_layers
from core.model.dimensions import num_dense_mlp_layers as num_dense_mlp_layers
from core.model.dimensions import num_layers_with_mlp as num_layers_with_mlp
from core.model.dimensions import num_mixer_layers as num_mixer_layers
from core.model.dimensions import num_moe_layers as num_moe_layers
from core.numeric import Numeric, kept_for_last


@kept_for_last
def query_size(model: Transformer) -> Numeric:
    """Width of all query heads."""
    mla_width = np.add(model.qk_nope_head_dim, model.qk_rope_head_dim)
    return model.num_attention_heads * np.where(is_mla(model), mla_width, model.head_dim)


@kept_for_last
def kv_size(model: Transformer) -> Numeric:
    """Width of all key heads plus all value heads that attention reads."""
    mla_width = np.add(np.add(model.qk_nope_head_dim, model.qk_rope_head_dim), model.v_head_dim)
    return np.where(
        is_mla(model),
        model.num_attention_heads * mla_width,
        2.0 * np.multiply(model.num_kv_heads, model.head_dim),
    )


@kept_for_last
def attention_output_size(model: Transformer) -> Numeric:
    """Width of the concatenated head outputs."""
    return model.num_attention_heads * np.where(is_mla(model), model.v_head_dim, model.head_dim)


@kept_for_last
def attention_matrix_params(model: Transformer) -> Numeric:
    """Weights of one attention layer's matrices, without biases and norms. [D24, eq. 9-13]"""
    h, a = model.hidden_size, model.num_attention_heads
    q, kv, out = query_size(model), kv_size(model), attention_output_size(model)
    dense = h * (q * np.where(model.attention_gate, 2.0, 1.0) + kv) + out * h
    r_q, r_kv = model.q_lora_rank, model.kv_lora_rank
    query = np.where(np.asarray(r_q) > 0, np.multiply(h, r_q) + r_q * q, h * q)
    down = h * np.add(r_kv, model.qk_rope_head_dim)
    up = r_kv * np.multiply(a, np.add(model.qk_nope_head_dim, model.v_head_dim))
    return np.where(is_mla(model), query + down + up + out * h, dense)


@kept_for_last
def mlp_matrix_params(model: Transformer) -> Numeric:
    """Weights of one dense MLP's matrices."""
    return np.multiply(model.hidden_size, model.ffn_hidden_size) * matrices_per_mlp(model)


@kept_for_last
def matrices_per_mlp(model: Transformer) -> Numeric:
    """3 with a gate, 2 without."""
    return np.where(model.gated_mlp, 3.0, 2.0)


@kept_for_last
def expert_matrix_params(model: Transformer) -> Numeric:
    """Weights of one expert's matrices."""
    return np.multiply(model.hidden_size, model.moe_ffn_hidden_size) * matrices_per_mlp(model)


@kept_for_last
def mlp_params(model: Transformer) -> Numeric:
    """One dense MLP: its matrices and, with `linear_bias`, their biases."""
    return mlp_matrix_params(model) + _mlp_biases(model, model.ffn_hidden_size)


@kept_for_last
def expert_params(model: Transformer) -> Numeric:
    """One expert: its matrices and, with `linear_bias`, their biases."""
    return expert_matrix_params(model) + _mlp_biases(model, model.moe_ffn_hidden_size)


def _mlp_biases(model: Transformer, inner_size: Numeric) -> Numeric:
    inner = (matrices_per_mlp(model) - 1) * inner_size  # gate and up, or up alone
    return np.where(model.linear_bias, np.add(model.hidden_size, inner), 0.0)


@kept_for_last
def router_params(model: Transformer) -> Numeric:
    """One MoE layer's router."""
    bias = np.where(model.linear_bias, model.num_experts, 0.0)
    return np.multiply(model.hidden_size, model.num_experts) + bias


@kept_for_last
def norm_params(model: Transformer) -> Numeric:
    """Norms of one layer of any type."""
    per_norm = np.where(model.norm_bias, 2.0, 1.0)
    return np.multiply(model.norms_per_layer, model.hidden_size) * per_norm


@kept_for_last
def small_params(model: Transformer) -> Numeric:
    """One attention layer's biases and inner norms; an MLP's biases are with the MLP."""
    latent_norms = np.where(is_mla(model), np.add(model.q_lora_rank, model.kv_lora_rank), 0.0)
    head_norms = np.where(model.qk_norm, 2.0 * model.head_dim, 0.0)
    qkv_bias = np.where(model.qkv_bias, query_size(model) + kv_size(model), 0.0)
    output_bias = np.where(model.linear_bias, model.hidden_size, 0.0)
    return latent_norms + head_norms + qkv_bias + output_bias


@kept_for_last
def layer_params(model: Transformer) -> Numeric:
    """All parameters of the layers that every rank of a data-parallel group holds: everything
    except routed experts, embeddings and LM head."""
    shared = np.multiply(model.num_shared_experts, expert_params(model))
    attention = attention_matrix_params(model) + small_params(model)
    return (
        model.num_layers * norm_params(model)
        + num_attention_layers(model) * attention
        + state_space.params(model)
        + num_dense_mlp_layers(model) * mlp_params(model)
        + num_moe_layers(model) * (shared + router_params(model))
    )


@kept_for_last
def routed_expert_params(model: Transformer) -> Numeric:
    """All parameters of the routed experts."""
    return num_moe_layers(model) * np.multiply(model.num_experts, expert_params(model))


@kept_for_last
def embedding_params(model: Transformer) -> Numeric:
    """Token and position embeddings."""
    return model.hidden_size * np.add(model.vocab_size, model.num_positions)


@kept_for_last
def head_params(model: Transformer) -> Numeric:
    """Final norm and, unless tied, the LM head."""
    h = model.hidden_size
    head = np.where(model.tied_embeddings, 0.0, np.multiply(h, model.vocab_size))
    return head + h * np.where(model.norm_bias, 2.0, 1.0)


@kept_for_last
def total_params(model: Transformer) -> Numeric:
    """Every trained parameter.

    >>> llama = Transformer(num_layers=32, hidden_size=4096, ffn_hidden_size=14336,
    ...     num_attention_heads=32, num_kv_heads=8, head_dim=128, vocab_size=128256)
    >>> int(total_params(llama))
    8030261248
    """
    return (
        layer_params(model)
        + routed_expert_params(model)
        + embedding_params(model)
        + head_params(model)
    )


@kept_for_last
def active_params(model: Transformer) -> Numeric:
    """Parameters that one token passes through, without the experts that it is not routed to."""
    idle = np.subtract(model.num_experts, model.experts_per_token)
    return total_params(model) - num_moe_layers(model) * idle * expert_params(model)


def mean_attended_tokens(*, seq_len: Numeric, window: Numeric) -> Numeric:
    """Keys that a query sees, averaged over a causal sequence; window 0 is no window.

    (s+1)/2 without a window; with one of w < s: w - w(w-1)/(2s).

    >>> float(mean_attended_tokens(seq_len=4.0, window=0.0))
    2.5
    """
    s = seq_len
    w: Numeric = np.where(np.asarray(window) > 0, np.minimum(window, s), s)
    return w - w * (w - 1) / (2 * s)


def attention_score_flops_per_token(model: Transformer, seq_len: Numeric) -> Numeric:
    """Forward FLOPs of Q K^T and of the weighted sum of V, all layers. [P22, appendix B]"""
    widths = query_size(model) + attention_output_size(model)
    windowed, layers = model.num_window_layers, num_attention_layers(model)
    whole = mean_attended_tokens(seq_len=seq_len, window=0.0)
    local = mean_attended_tokens(seq_len=seq_len, window=model.sliding_window)
    return 2 * widths * (np.subtract(layers, windowed) * whole + windowed * local)


@kept_for_last
def matrix_flops_per_token(model: Transformer) -> Numeric:
    """Forward FLOPs of all matrices of the layers (2 per active weight), without LM head."""
    active_experts = np.add(model.num_shared_experts, model.experts_per_token)
    router = np.multiply(model.hidden_size, model.num_experts)
    return 2 * (
        num_attention_layers(model) * attention_matrix_params(model)
        + state_space.matrix_params(model)
        + num_dense_mlp_layers(model) * mlp_matrix_params(model)
        + num_moe_layers(model) * (active_experts * expert_matrix_params(model) + router)
    )


@kept_for_last
def head_flops_per_token(model: Transformer) -> Numeric:
    """Forward FLOPs of the LM head, tied or not."""
    return 2 * np.multiply(model.hidden_size, model.vocab_size)


def forward_flops_per_token(model: Transformer, seq_len: Numeric) -> Numeric:
    """Model FLOPs of one token's forward pass. [N21] with causal attention counted once."""
    return (
        matrix_flops_per_token(model)
        + attention_score_flops_per_token(model, seq_len)
        + state_space.scan_flops_per_token(model)
        + head_flops_per_token(model)
    )


def train_flops_per_token(model: Transformer, seq_len: Numeric) -> Numeric:
    """Model FLOPs of one token's forward and backward pass: the numerator of MFU."""
    return 3 * forward_flops_per_token(model, seq_len)
