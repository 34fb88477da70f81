"""Time of a matrix multiplication.

    time = 2 m n k / (ceiling x efficiency)  +  u x bytes / memory bandwidth  +  t

The ceiling is the best matmul measured on the accelerator. The second term is the memory traffic
that a real kernel does not hide (prologue, epilogue, partial waves). It makes skinny matrices (few
tokens, dimensions divided by TP or EP) slow: their bytes shrink slower than their FLOPs. It scales
with the machine's FLOPs per byte, so it holds across generations. The last term is the time in
which a kernel fills and drains the device.

[W09] Williams et al., "Roofline", CACM 52(4), 2009: the two limits that this sum smooths.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Numeric

TILES = ((128, 256), (128, 128))


def matmul_flops(*, m: Numeric, n: Numeric, k: Numeric) -> Numeric:
    """2 m n k."""
    return 2.0 * m * n * k


def matmul_bytes(*, m: Numeric, n: Numeric, k: Numeric, input_bytes: Numeric = 2.0) -> Numeric:
    """Inputs read and a 16-bit output written once."""
    return input_bytes * (np.multiply(m, k) + np.multiply(k, n)) + 2.0 * np.multiply(m, n)


def wave_share(
    *, m: Numeric, n: Numeric, multiprocessors: Numeric, matrices: Numeric = 1.0
) -> Numeric:
    """Share of the last wave of tiles that is empty, over the full waves: 0 where tiles divide.

    Tiles are distributed over multiprocessors in waves; a partial wave takes as long as a full one.
    The better of two tile shapes is taken, as libraries do. NaN multiprocessors: no waves.

    >>> float(wave_share(m=1024, n=128 * 33, multiprocessors=132))
    0.0
    """
    best: Numeric = np.inf
    for tile_m, tile_n in TILES:
        tiles = matrices * np.ceil(np.divide(m, tile_m)) * np.ceil(np.divide(n, tile_n))
        waves = np.maximum(tiles, 1.0) / multiprocessors
        best = np.minimum(best, np.ceil(waves) / waves - 1)
    return np.where(np.isnan(multiprocessors), 0.0, best)


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
    idle: Numeric = 0.0,
) -> Numeric:
    """Seconds of one (m, k) x (k, n) product at an achieved rate. [W09]

    >>> round(float(matmul_s(m=8192, n=8192, k=8192, flops_per_s=700e12,
    ...     bytes_per_s=2.7e12, unhidden=0.0)) * 1e3, 3)
    1.571
    """
    compute_s = matmul_flops(m=m, n=n, k=k) / flops_per_s * (1 + np.asarray(idle))
    moved = matmul_bytes(m=m, n=n, k=k, input_bytes=input_bytes)
    return compute_s + unhidden * moved / bytes_per_s + kernel_s
