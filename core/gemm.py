"""Seconds of a matrix multiplication.

    time = 2 m n k / (ceiling x efficiency)  +  u x bytes / memory bandwidth  +  t

The ceiling is the best matmul measured on the accelerator. The second term is what a real
kernel does not hide of its traffic - prologue, epilogue, partial waves - and is what makes
skinny matrices (few tokens, dimensions cut by TP or EP) slow: their bytes shrink slower than
their FLOPs. It scales with the machine's FLOPs per byte, so it holds across generations. The
last is the time in which a kernel fills and drains the device.

[W09] Williams et al., "Roofline", CACM 52(4), 2009: the two limits that this sum smooths.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric


def matmul_flops(*, m: Numeric, n: Numeric, k: Numeric) -> Numeric:
    """2 m n k."""
    return 2.0 * m * n * k


def matmul_bytes(*, m: Numeric, n: Numeric, k: Numeric, input_bytes: Numeric = 2.0) -> Numeric:
    """Inputs read and a 16-bit output written once."""
    return input_bytes * (np.multiply(m, k) + np.multiply(k, n)) + 2.0 * np.multiply(m, n)


def matmul_s(
    *,
    m: Numeric,
    n: Numeric,
    k: Numeric,
    flops_per_s: Numeric,
    bytes_per_s: Numeric,
    unhidden: Numeric,
    input_bytes: Numeric = 2.0,
    kernel_s: Numeric = 0.0,
) -> Numeric:
    """Seconds of one (m, k) x (k, n) product at an achieved rate. [W09]

    >>> round(float(matmul_s(m=8192, n=8192, k=8192, flops_per_s=700e12,
    ...     bytes_per_s=2.7e12, unhidden=0.0)) * 1e3, 3)
    1.571
    """
    compute_s = matmul_flops(m=m, n=n, k=k) / flops_per_s
    moved = matmul_bytes(m=m, n=n, k=k, input_bytes=input_bytes)
    return compute_s + unhidden * moved / bytes_per_s + kernel_s
