"""State-space layers and linear attention (delta rule): parameters, FLOPs and bytes.

[D24] Dao and Gu, "Transformers are SSMs", arXiv:2405.21060: Mamba-2, scanned in chunks.
[G23] Gu and Dao, "Mamba", arXiv:2312.00752: Mamba-1, here with Jamba's inner norms
      (arXiv:2403.19887).
[Y24] Yang et al., "Gated Delta Networks", arXiv:2412.06464. [K25] Kimi Team, "Kimi Linear",
      arXiv:2510.26692: gates of low rank, a decay for every channel.
[MLM] NVIDIA/Megatron-LM@001b00c27, megatron/training/training.py: FLOPs of the scans.

Parameters are those of the modules that huggingface/transformers 5.23.0 builds.
Validity: training of whole sequences. The scans are counted as recurrences, as [MLM] does;
chunked kernels do about as many multiplications, on tensor cores.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from core.model.dimensions import Transformer
from core.numeric import Numeric, kept_for_last

SSM_CHUNK = 256  # tokens between two states that are written [D24]
DELTA_CHUNK = 64  # of the kernels of the delta rule
SSM_SCAN_FLOPS = 7.0  # per element of the state and token [MLM]
DELTA_RULE_FLOPS = 8.0  # four multiply-adds per element of the state and token [MLM]


class Projection(NamedTuple):
    """A matrix of n x k weights in `layers` layers; `cut` is the side that tensor parallelism
    divides."""

    n: Numeric
    k: Numeric
    layers: Numeric
    cut: str  # "n", "k" or ""


@kept_for_last
def has_state(model: Transformer) -> bool:
    """Whether any layer (of any model of a column) is a state-space or linear-attention one."""
    return bool(np.any(np.add(model.num_ssm_layers, model.num_linear_layers) > 0))


@kept_for_last
def linear_key_size(model: Transformer) -> Numeric:
    """Width of all keys of a linear-attention layer, equal to the width of its queries."""
    return np.multiply(model.linear_num_key_heads, model.linear_key_head_dim)


@kept_for_last
def linear_value_size(model: Transformer) -> Numeric:
    """Width of all values of a linear-attention layer."""
    return np.multiply(model.linear_num_value_heads, model.linear_value_head_dim)


@kept_for_last
def _ssm_conv_channels(model: Transformer) -> Numeric:
    """x, B and C in Mamba-2, x alone in Mamba-1."""
    b_and_c = 2 * np.multiply(model.ssm_num_groups, model.ssm_state_size)
    return np.where(_is_mamba1(model), model.ssm_inner_size, model.ssm_inner_size + b_and_c)


@kept_for_last
def _linear_conv_channels(model: Transformer) -> Numeric:
    return 2 * linear_key_size(model) + linear_value_size(model)


@kept_for_last
def _is_mamba1(model: Transformer) -> Numeric:
    return np.asarray(model.ssm_dt_rank) > 0


@kept_for_last
def projections(model: Transformer) -> list[Projection]:
    """The matrices of all state-space and linear-attention layers; empty where there is none."""
    if not has_state(model):
        return []
    h = np.asarray(model.hidden_size, dtype=float)
    one = _is_mamba1(model)
    mamba1 = np.where(one, model.num_ssm_layers, 0.0)
    ssm = np.asarray(model.num_ssm_layers, dtype=float)
    inner, rank = model.ssm_inner_size, np.asarray(model.ssm_dt_rank, dtype=float)
    gate_and_step = np.where(one, inner, np.add(inner, model.ssm_num_heads))
    linear = np.asarray(model.num_linear_layers, dtype=float)
    keys, values = linear_key_size(model), linear_value_size(model)
    beta, gate_rank = model.linear_num_value_heads, np.asarray(model.linear_gate_rank, dtype=float)
    low = gate_rank > 0
    gates = np.where(low, 2 * gate_rank, np.add(values, model.linear_num_value_heads))
    low_layers = np.where(low, linear, 0.0)
    return [
        Projection(_ssm_conv_channels(model) + gate_and_step, h, ssm, "n"),
        Projection(rank + 2 * np.asarray(model.ssm_state_size), inner, mamba1, "k"),
        Projection(inner, rank, mamba1, "n"),
        Projection(h, inner, ssm, "k"),
        Projection(2 * keys + values + beta + gates, h, linear, "n"),
        Projection(keys, gate_rank, low_layers, "n"),
        Projection(values, gate_rank, low_layers, "n"),
        Projection(h, values, linear, "k"),
    ]


def matmuls(model: Transformer, *, tp: Numeric) -> list[tuple[Numeric, Numeric, Numeric]]:
    """(n, k, share of layers) of the matmuls of one layer, divided by tensor parallelism."""
    layers = np.maximum(model.num_layers, 1.0)
    return [
        (
            np.divide(p.n, tp) if p.cut == "n" else p.n,
            np.divide(p.k, tp) if p.cut == "k" else p.k,
            p.layers / layers,
        )
        for p in projections(model)
    ]


@kept_for_last
def matrix_params(model: Transformer) -> Numeric:
    """Weights of the matrices, all layers."""
    total: Numeric = np.zeros_like(np.asarray(model.num_ssm_layers, dtype=float))
    for p in projections(model):
        total = total + p.layers * np.multiply(p.n, p.k)
    return total


@kept_for_last
def params(model: Transformer) -> Numeric:
    """All parameters of these mixers, all layers, without the norm before the mixer."""
    inner, state = model.ssm_inner_size, model.ssm_state_size
    conv = _ssm_conv_channels(model) * np.add(model.ssm_conv_size, 1.0)  # with a bias
    mamba2 = 3 * np.asarray(model.ssm_num_heads) + inner  # A, D, step bias; gated norm
    norms = np.add(model.ssm_dt_rank, 2 * np.asarray(state))
    mamba1 = np.multiply(inner, state) + 2 * np.asarray(inner) + norms  # A; D, step bias
    ssm = conv + np.where(_is_mamba1(model), mamba1, mamba2)
    heads = np.asarray(model.linear_num_value_heads)
    low = np.asarray(model.linear_gate_rank) > 0
    decay = heads + np.where(low, linear_key_size(model), heads)  # A; step bias
    linear_conv = _linear_conv_channels(model) * model.linear_conv_size
    linear = linear_conv + decay + model.linear_value_head_dim  # norm of one head
    small = np.multiply(model.num_ssm_layers, ssm) + np.multiply(model.num_linear_layers, linear)
    return matrix_params(model) + small


@kept_for_last
def scan_flops_per_token(model: Transformer) -> Numeric:
    """Forward FLOPs of the convolutions and of the scans, all layers. [MLM]"""
    ssm = SSM_SCAN_FLOPS * np.multiply(model.ssm_inner_size, model.ssm_state_size)
    ssm = ssm + 2 * _ssm_conv_channels(model) * model.ssm_conv_size
    per_head = np.multiply(model.linear_key_head_dim, model.linear_value_head_dim)
    linear = DELTA_RULE_FLOPS * model.linear_num_value_heads * per_head
    linear = linear + 2 * _linear_conv_channels(model) * model.linear_conv_size
    return np.multiply(model.num_ssm_layers, ssm) + np.multiply(model.num_linear_layers, linear)


@kept_for_last
def scan_bytes_per_token(model: Transformer) -> Numeric:
    """Forward bytes of convolution, scan and gated norm, 16 bits an element, states in fp32,
    mean over all layers of the model. Operator by operator, as in core/time/kernels.py."""
    inner = np.asarray(model.ssm_inner_size)
    channels = _ssm_conv_channels(model)
    # Convolution in and out; scan reads x, B, C and writes y; gated norm reads y, z and writes.
    ssm = 2 * (2 * channels + channels + inner + 3 * inner)
    # One fp32 state a chunk: written, passed on (read, written), read.
    ssm = ssm + 4 * 4 * inner * model.ssm_state_size / SSM_CHUNK
    heads, values = np.asarray(model.linear_num_value_heads), linear_value_size(model)
    # Keys and queries are normalised and repeated for every value head, then read twice; w and
    # u of the WY form are written and read; values in, output out; gated norm.
    keys = heads * model.linear_key_head_dim
    linear = 2 * (2 * _linear_conv_channels(model) + (4 + 4 + 2) * keys + (2 + 2 + 3) * values)
    state = keys * model.linear_value_head_dim
    linear = linear + 2 * 2 * state / DELTA_CHUNK
    return _mean_over_layers(model, ssm=ssm, linear=linear)


@kept_for_last
def kept_bytes_per_token(model: Transformer) -> Numeric:
    """Bytes kept for backward, all divided by tensor parallelism, mean over all layers of the
    model: outputs of the input projection and of the scan, the input of the output projection, and,
    in linear attention, the output of the convolution and one row of the chunk's inverse per head.
    States are recomputed in backward, as the kernels of [D24] and [Y24] do."""
    inner, heads = np.asarray(model.ssm_inner_size), np.asarray(model.linear_num_value_heads)
    ssm = 2 * (_ssm_conv_channels(model) + inner + model.ssm_num_heads + 2 * inner)
    channels, values = _linear_conv_channels(model), linear_value_size(model)
    linear = 2 * (2 * channels + values + 2 * heads + 2 * values + DELTA_CHUNK * heads)
    return _mean_over_layers(model, ssm=ssm, linear=linear)


def _mean_over_layers(model: Transformer, *, ssm: Numeric, linear: Numeric) -> Numeric:
    total = np.multiply(model.num_ssm_layers, ssm) + np.multiply(model.num_linear_layers, linear)
    return total / np.maximum(model.num_layers, 1.0)
