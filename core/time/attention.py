"""Time of fused attention (FlashAttention), forward and backward.

[D23] Dao, "FlashAttention-2", arXiv:2307.08691, section 4.1: FLOP counts; backward does 2.5x
      the forward's (five matmuls instead of two).
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric

BACKWARD_FLOPS = 2.5  # over forward [D23]
REFERENCE_HEAD_DIM = 128.0


def head_dim_factor(head_dim: Numeric, half: Numeric, unaligned: Numeric = 1.0) -> Numeric:
    """Rate at this head_dim over the rate at 128. Validity: 32 to 256.

    >>> float(head_dim_factor(128.0, half=48.0))
    1.0
    """
    d = np.asarray(head_dim, dtype=float)
    limit = (REFERENCE_HEAD_DIM + half) / REFERENCE_HEAD_DIM
    smooth = np.minimum(limit * d / (d + half), 1.1)
    return np.where(d % 8 == 0, smooth, smooth / unaligned)


def sequence_factor(seq_len: Numeric, half: Numeric) -> Numeric:
    """Rate at this sequence length over that of a long sequence: few blocks fill the device badly,
    and a causal block on the diagonal is computed whole. [D23, figure 4]

    >>> float(sequence_factor(1024.0, half=1024.0))
    0.5
    """
    return np.divide(seq_len, np.add(seq_len, half))


def forward_s(
    *,
    flops: Numeric,
    flops_per_s: Numeric,
    head_dim: Numeric,
    half_head_dim: Numeric,
    unaligned_slowdown: Numeric,
    seq_len: Numeric,
    half_tokens: Numeric,
) -> Numeric:
    """Seconds of the forward kernel; `flops_per_s` is its rate at head_dim 128, long sequence."""
    shape = head_dim_factor(head_dim, half_head_dim, unaligned_slowdown) * sequence_factor(
        seq_len, half_tokens
    )
    return flops / (flops_per_s * shape)


def backward_s(*, forward_s: Numeric, relative_rate: Numeric) -> Numeric:
    """Seconds of the backward kernel that belongs to a forward kernel. [D23]"""
    return BACKWARD_FLOPS * np.divide(forward_s, relative_rate)
