"""Inputs distributed like those of training, and errors of results against float64."""

from __future__ import annotations

import math

import torch
from torch import Tensor

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_NOT_A_NUMBER = 1e9  # written for an error or a loss that is not finite: JSON has no NaN


def normal(*shape: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """N(0, 1): zeros and small integers switch fewer transistors and run faster than training."""
    return torch.randn(shape, dtype=torch.float32, device=device).to(dtype)


def entropy_bits(x: Tensor) -> float:
    """Entropy of a histogram of 256 bins on [-4, 4]: 7.05 for N(0, 1), 0 for a constant.

    Other distributions have less: a uniform one on [0, 1) 5, small integers almost none.
    """
    values = x.detach().flatten()[:65536].float().cpu()
    counts = torch.histc(values.clamp(-4.0, 4.0), bins=256, min=-4.0, max=4.0)
    shares = counts[counts > 0] / max(values.numel(), 1)
    return float(-(shares * shares.log2()).sum())


def relative_error(got: Tensor, wanted: Tensor) -> float:
    """Norm of the difference over the norm, in float64; never NaN."""
    difference = (got.double() - wanted).norm() / wanted.norm().clamp_min(1e-300)
    return finite(float(difference))


def finite(value: float) -> float:
    return value if math.isfinite(value) else _NOT_A_NUMBER
