"""Low-rank adapters: their size, and the bytes of a frozen, quantised base.

[H21] Hu et al., "LoRA", arXiv:2106.09685. [D23] Dettmers et al., "QLoRA", arXiv:2305.14314,
      section 3: NF4 in blocks of 64 with fp32 scales; double quantisation keeps 8-bit scales and
      one fp32 constant for 256 of them.
"""

from __future__ import annotations

import numpy as np

from core.model import state_space
from core.model.transformer import (
    Transformer,
    attention_output_size,
    is_mla,
    kv_size,
    matrices_per_mlp,
    num_attention_layers,
    num_dense_mlp_layers,
    num_moe_layers,
    query_size,
    total_params,
)
from core.numeric import Numeric

NF4_BYTES = 0.5
BLOCK = 64
SCALES_PER_CONSTANT = 256


def attention_adapter_params(model: Transformer, rank: Numeric) -> Numeric:
    """Adapters of q, k, v and output, all layers: r (k + n) each. [H21, section 4.1]

    Latent attention is adapted at its outer widths.
    """
    h = np.asarray(model.hidden_size, dtype=float)
    kv = kv_size(model)
    inputs = np.where(is_mla(model), 2 * h, 3 * h)
    gated = query_size(model) * np.where(model.attention_gate, 2.0, 1.0)
    widths = gated + kv + attention_output_size(model)
    return num_attention_layers(model) * rank * (inputs + widths + h)


def mlp_adapter_params(model: Transformer, rank: Numeric) -> Numeric:
    """Adapters of the MLP matrices, of every expert where there are experts, and of state-space
    and linear-attention projections."""
    matrices = matrices_per_mlp(model)
    dense = matrices * np.add(model.hidden_size, model.ffn_hidden_size)
    experts = np.add(model.num_experts, model.num_shared_experts)
    sparse = experts * matrices * np.add(model.hidden_size, model.moe_ffn_hidden_size)
    mlps = num_dense_mlp_layers(model) * dense + num_moe_layers(model) * sparse
    for p in state_space.projections(model):
        mlps = mlps + p.layers * np.add(p.n, p.k)
    return rank * mlps


def trained_fraction(model: Transformer, *, rank: Numeric, on_mlp: bool) -> Numeric:
    """Adapter parameters over all parameters of the model."""
    params = attention_adapter_params(model, rank)
    if on_mlp:
        params = params + mlp_adapter_params(model, rank)
    return params / total_params(model)


def nf4_bytes_per_param(*, double_quantisation: bool) -> float:
    """Bytes of one quantised weight with its scales. [D23]

    >>> nf4_bytes_per_param(double_quantisation=False)
    0.5625
    """
    scale = 4 / BLOCK
    if double_quantisation:
        scale = 1 / BLOCK + 4 / (BLOCK * SCALES_PER_CONSTANT)
    return NF4_BYTES + scale
