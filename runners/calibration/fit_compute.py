"""Fit of matmuls, attention, memory and the host link of one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from core.layout.precision import matmul_speedup
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.numeric import as_float
from core.time import attention as time_attention
from core.time import gemm, measured_shapes
from runners.calibration.result import CalibResult, Row

MAIN = ("bf16", "fp16")  # 16-bit matmuls, in order of preference
OF_NORMAL = 1.35  # interquartile range of a normal distribution over its deviation


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A measured quantity and the value that a forecast assumes."""

    assumed: float
    measured: float
    unit: str
    sigma: float  # standard deviation of the log of `measured`
    num_measured: int
    left_out_error: float | None = None
    is_posterior: bool = False  # the prior has already been joined
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmuls:
    """The constant of 16-bit matmuls, and the corrections by shape."""

    constant: Measured
    at: tuple[tuple[float, float, float], ...]
    weights: tuple[float, ...]


def spread(row: Row) -> float:
    """Deviation of the log of a row's time: that of one sample, because the next session may differ
    as much."""
    return row.rel_iqr / OF_NORMAL


def standalone_s(
    row: Row, cluster: Cluster, eff: Efficiency, *, speedup: float = 1.0, input_bytes: float = 2.0
) -> float:
    """Forecast of a single matmul at the machine's ceiling, without the losses inside a step."""
    m, n, k = (float(row.params[axis]) for axis in "mnk")
    idle = gemm.wave_share(m=m, n=n, multiprocessors=cluster.multiprocessors)
    seconds = gemm.matmul_s(
        m=m,
        n=n,
        k=k,
        flops_per_s=cluster.peak_flops_per_s * cluster.ceiling * speedup,
        bytes_per_s=cluster.memory_bytes_per_s * eff.memory,
        unhidden=eff.matmul_unhidden,
        input_bytes=input_bytes,
        kernel_s=eff.kernel_s,
        idle=eff.wave * idle,
    )
    if len(cluster.matmul_weights):
        at, weights = np.asarray(cluster.matmul_at), np.asarray(cluster.matmul_weights)
        seconds = seconds / np.exp(measured_shapes.log_factor(at, weights, m=m, n=n, k=k))
    return as_float(seconds)


def matmuls(
    rows: Sequence[Row],
    cluster: Cluster,
    eff: Efficiency,
    *,
    prior_sigma: float,
    least_sigma: float,
) -> Matmuls | None:
    """Fit of 16-bit matmuls of every measured shape; None if there is none."""
    dtypes = {row.dtype for row in rows}
    dtype = next((d for d in MAIN if d in dtypes), None)
    # A fit cannot use a shape twice: the first row of each shape counts.
    shapes = {
        tuple(r.params[axis] for axis in "mnk"): r for r in reversed(rows) if r.dtype == dtype
    }
    if dtype is None:
        return None
    rows = list(reversed(shapes.values()))
    log_ratio = np.array([np.log(standalone_s(row, cluster, eff) / row.t_med_s) for row in rows])
    sigma = np.array([max(spread(row), least_sigma) for row in rows])
    axes = {a: np.array([float(row.params[a]) for row in rows]) for a in "mnk"}
    fit = measured_shapes.fit(**axes, log_ratio=log_ratio, sigma=sigma, prior_sigma=prior_sigma)
    # A new ceiling changes matmuls that wait for memory less: shapes are compared with the new
    # forecast.
    moved = replace(cluster, ceiling=cluster.ceiling * np.exp(fit.constant))
    left = np.array([np.log(standalone_s(row, moved, eff) / row.t_med_s) for row in rows])
    smooth = measured_shapes.fit(**axes, log_ratio=left, sigma=sigma, prior_sigma=0.0)
    ceiling = as_float(cluster.peak_flops_per_s * cluster.ceiling) / 1e12
    return Matmuls(
        constant=Measured(
            assumed=ceiling,
            measured=ceiling * float(np.exp(fit.constant)),
            unit="TFLOP/s",
            sigma=fit.constant_sigma,
            num_measured=len(rows),
            left_out_error=float(np.median(np.abs(np.expm1(fit.leave_one_out)))),
            is_posterior=True,
            note="of large matrices; each measured shape as it was measured",
        ),
        at=tuple((float(x), float(y), float(z)) for x, y, z in smooth.at),
        weights=tuple(float(w) for w in smooth.weights),
    )


def fp8(rows: Sequence[Row], cluster: Cluster, eff: Efficiency) -> Measured | None:
    """Speed-up of fp8 matmuls over 16-bit ones; None without fp8 or a measurement of it."""
    rows = [row for row in rows if row.dtype == "fp8"]
    speedup = matmul_speedup(
        matmul_bits=8.0,
        fp8_ratio=cluster.fp8_ratio,
        fp4_ratio=cluster.fp4_ratio,
        fp8_fraction=eff.fp8_of_peak_ratio,
        fp4_fraction=eff.fp4_of_peak_ratio,
    )
    assumed = as_float(speedup)
    if not rows or not np.isfinite(assumed):
        return None
    logs = np.array(
        [
            np.log(standalone_s(r, cluster, eff, speedup=assumed, input_bytes=1.0) / r.t_med_s)
            for r in rows
        ]
    )
    middle = float(np.median(logs))
    return Measured(
        assumed=assumed,
        measured=assumed * float(np.exp(middle)),
        unit="times 16 bits",
        sigma=float(np.median(np.abs(logs - middle))) * 1.4826 / len(rows) ** 0.5,
        num_measured=len(rows),
    )


def attention_rate(result: CalibResult, cluster: Cluster, eff: Efficiency) -> Measured | None:
    """Fused attention as torch runs it, forward and with backward."""
    logs, sigmas, rates = [], [], []
    for row in result.rows("attention"):
        forward = time_attention.forward_s(
            flops=float(row.flops or 0.0) / (3.5 if row.mode == "fwdbwd" else 1.0),
            flops_per_s=cluster.peak_flops_per_s
            * eff.attention_forward
            * eff.flash2 ** np.asarray(cluster.newer_than_flash2),
            head_dim=float(row.params["head_dim"]),
            half_head_dim=eff.attention_half_head_dim,
            unaligned_slowdown=eff.unaligned_slowdown,
            seq_len=float(row.params["seq_len"]),
            half_tokens=eff.attention_half_tokens,
        )
        whole = forward
        if row.mode == "fwdbwd":
            whole = forward + time_attention.backward_s(
                forward_s=forward, relative_rate=eff.attention_backward
            )
        logs.append(float(np.log(np.asarray(whole) / row.t_med_s)))
        sigmas.append(spread(row))
        rates.append((row.flops_per_s or 0.0) / 1e12)
    if not logs:
        return None
    middle, measured = median(logs), median(rates)
    return Measured(
        assumed=measured / float(np.exp(middle)),
        measured=measured,
        unit="TFLOP/s",
        sigma=max(*sigmas, max(logs) - min(logs), 0.0) if len(logs) > 1 else sigmas[0],
        num_measured=len(logs),
        note="scaled_dot_product_attention, against FlashAttention 2",
    )


def memory(result: CalibResult, cluster: Cluster, eff: Efficiency) -> Measured | None:
    """Bandwidth of a copy, which reads and writes like training."""
    return _bandwidth(
        [row for row in result.rows("memory_bandwidth") if row.label == "copy"],
        as_float(cluster.memory_bytes_per_s * eff.memory),
    )


def host_link(result: CalibResult, cluster: Cluster, eff: Efficiency) -> Measured | None:
    """Copies of pinned memory to the device and back: the slower of the two."""
    rows = [row for row in result.rows("host_device") if row.label != "memcpy"]
    assumed = as_float(cluster.host_link_bytes_per_s * eff.host_link)
    return _bandwidth(sorted(rows, key=lambda r: r.bytes_per_s or 0.0)[:1], assumed)


def checkpoint_bytes_per_s(result: CalibResult) -> float | None:
    """Rate at which all ranks of one machine wrote together; None if it was not measured."""
    rows = result.rows("checkpoint")
    if not rows:
        return None
    return min((row.bytes_per_s or 0.0) * float(row.params["writers"]) for row in rows)


def _bandwidth(rows: list[Row], assumed: float) -> Measured | None:
    if not rows:
        return None
    rate = median(row.bytes_per_s or 0.0 for row in rows)
    return Measured(
        assumed=assumed / 1e9,
        measured=rate / 1e9,
        unit="GB/s",
        sigma=max(spread(row) for row in rows),
        num_measured=len(rows),
    )
