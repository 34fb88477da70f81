"""Kernels measured alone, as extra rows in the fit of throughput.

They show how the speed of matmuls and attention grows with shape, which whole runs identify
poorly. How fast kernels are inside a full training step can only be learned from runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.machine.efficiency import Efficiency
from core.time import attention as time_attention
from core.time import gemm
from hardware.facts import accelerator
from hardware.measured_kernels import measured_kernels

Numbers = NDArray[np.float64]
WEIGHT = 0.03  # per row: about thirty shapes of a benchmark weigh as much as one run
INPUT_BYTES = {"fp16": 2.0, "bf16": 2.0, "fp8": 1.0}
FLASH2 = "FA2"


def log_measured() -> Numbers:
    """Logarithm of the measured FLOP/s of every row."""
    return np.log(measured_kernels().flops_per_s)


def log_predicted(eff: Efficiency) -> Numbers:
    """Logarithm of the forecast FLOP/s of every row. Fields of `eff` broadcast against rows."""
    rows = measured_kernels()
    is_matmul = rows.kernel == "matmul"
    chips = [accelerator(str(name)) for name in rows.accelerator]
    peak = np.array([c.bf16_flops_per_s for c in chips])
    processors = np.array([c.multiprocessor_count or np.nan for c in chips])
    flops = np.where(is_matmul, 2 * rows.m * rows.n * rows.k, 1.0)
    seconds = gemm.matmul_s(
        m=rows.m,
        n=rows.n,
        k=rows.k,
        flops_per_s=_best_of_its_kind(is_matmul),
        bytes_per_s=eff.memory * np.array([c.memory_bytes_per_s for c in chips]),
        unhidden=eff.matmul_unhidden,
        input_bytes=np.array([INPUT_BYTES[str(p)] for p in rows.precision]),
        kernel_s=eff.kernel_s,
        idle=eff.wave * gemm.wave_share(m=rows.m, n=rows.n, multiprocessors=processors),
    )
    newer = np.array([c.architecture.newer_than_flash2 for c in chips])
    old = np.where(rows.version == FLASH2, newer, 0.0)
    forward_s = time_attention.forward_s(
        flops=1.0,
        flops_per_s=peak * eff.attention_forward * eff.flash2**old,
        head_dim=rows.head_dim,
        half_head_dim=eff.attention_half_head_dim,
        unaligned_slowdown=eff.unaligned_slowdown,
        seq_len=rows.seq_len,
        half_tokens=eff.attention_half_tokens,
    )
    backward = rows.kernel == "attention_backward"
    attention_rate = np.where(backward, eff.attention_backward, 1.0) / forward_s
    return np.log(np.where(is_matmul, flops / seconds, attention_rate))


def _best_of_its_kind(is_matmul: NDArray[np.bool_]) -> Numbers:
    """The highest rate of any matmul on the row's accelerator and precision; 1 for attention."""
    rows = measured_kernels()
    best = np.ones(len(rows))
    keys = np.array([f"{a}|{p}" for a, p in zip(rows.accelerator, rows.precision, strict=True)])
    for key in np.unique(keys[is_matmul]):
        mine = is_matmul & (keys == key)
        best[mine] = rows.flops_per_s[mine].max()
    return best
