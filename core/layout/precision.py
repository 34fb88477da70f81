"""Number formats of training: the peak that matmuls run at, and the cost of quantising.

8- and 4-bit recipes keep master weights, optimizer, gradients and attention in 16 or 32 bits;
only the linear layers run at the lower precision and pay for quantising their inputs
[M22: Micikevicius et al., "FP8 Formats for Deep Learning", arXiv:2209.05433].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import unknown_name
from core.numeric import Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """One recipe. `matmul_bits` chooses the peak; `quantised_bytes` are moved per element of
    a matmul input to scale and cast it (read 16 bits, write 8 or 4, and the transpose)."""

    name: str
    matmul_bits: int
    quantised_bytes: float
    quantised_weight_bytes: float = 0.0  # per weight and pass, where each pass scales it anew


PRECISIONS = {
    p.name: p
    for p in (
        Precision(name="fp16", matmul_bits=16, quantised_bytes=0.0),
        Precision(name="bf16", matmul_bits=16, quantised_bytes=0.0),
        Precision(name="fp8", matmul_bits=8, quantised_bytes=4.0),
        Precision(name="fp8_rowwise", matmul_bits=8, quantised_bytes=5.0),
        Precision(name="fp8_blockwise", matmul_bits=8, quantised_bytes=5.0),
        Precision(name="mxfp8", matmul_bits=8, quantised_bytes=5.0),
        # At the peak of integer units. Scales run along the dimension that is summed over, so each
        # matmul finds the largest element of both inputs and casts them anew: 16 bits read twice,
        # 8 written (google/aqt: aqt/jax/v2/config.py, config_v3; MaxText's quantization=int8).
        Precision(name="int8", matmul_bits=8, quantised_bytes=10.0, quantised_weight_bytes=5.0),
        Precision(name="nvfp4", matmul_bits=4, quantised_bytes=6.0),
    )
}


def precision(name: str) -> Precision:
    """One recipe by name; an unknown name is an error."""
    if name not in PRECISIONS:
        raise unknown_name("precision", name, PRECISIONS)
    return PRECISIONS[name]


def matmul_speedup(
    *,
    matmul_bits: Numeric,
    fp8_ratio: Numeric,
    fp4_ratio: Numeric,
    fp8_fraction: Numeric,
    fp4_fraction: Numeric,
) -> Numeric:
    """Rate of the linear layers' matmuls over the 16-bit rate; NaN where the chip lacks it.

    The chip's own peak ratio times the fraction of it that matmuls reach; never below the
    16-bit rate, because a recipe that slows a matmul down leaves it in 16 bits.
    """
    low = np.where(
        np.asarray(matmul_bits) == 8,
        np.maximum(np.multiply(fp8_ratio, fp8_fraction), 1.0),
        np.maximum(np.multiply(fp4_ratio, fp4_fraction), 1.0),
    )
    missing = np.where(np.asarray(matmul_bits) == 8, fp8_ratio, fp4_ratio)
    low = np.where(np.isnan(missing), np.nan, low)
    return np.where(np.asarray(matmul_bits) == 16, 1.0, low)
