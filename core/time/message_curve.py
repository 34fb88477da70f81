"""Time of a message against its size, from measured points.

Between measured sizes the time is interpolated in logarithms, outside them it is latency plus bytes
over bandwidth. A time above that of a larger message is a disturbance, not a property: it is
lowered to the smallest time of the larger ones.

[H94] Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel
      Computing 20(3), 1994: t = alpha + bytes / bandwidth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import FactError
from core.numeric import Numeric

Column = NDArray[np.float64]

LATENCIES = 4.0  # from this many latencies on, bandwidth decides the time of a message
RESAMPLED = 400
SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Measured times of one operation, free of spikes, and the line beyond them."""

    size_bytes: Column  # increasing
    time_s: Column  # not decreasing
    spikes: NDArray[np.bool_]  # lowered
    latency_s: float
    bytes_per_s: float
    bytes_per_s_low: float  # 5% and 95% of resampled points
    bytes_per_s_high: float
    left_out_error: float  # median relative error of a point predicted from its neighbours


def fit(*, size_bytes: Column, time_s: Column, only_large: bool = False) -> Curve:
    """The curve through measured points, at least three sizes, in any order; beyond them [H94].

    With `only_large`, bandwidth decides the time of every point; the latency is then only known to
    be below the time of the smallest.
    """
    order = np.argsort(size_bytes, kind="stable")
    size, raw = np.asarray(size_bytes, dtype=float)[order], np.asarray(time_s, dtype=float)[order]
    if len(size) < 3 or size[0] <= 0 or raw.min() <= 0 or (np.diff(size) <= 0).any():
        raise FactError("a curve needs three sizes or more, each once, and times above 0")
    time = np.minimum.accumulate(raw[::-1])[::-1]
    latency = float(time[0])
    wide = (time >= LATENCIES * latency) | only_large
    if wide.sum() < 2:
        wide = np.arange(len(size)) >= len(size) - 2
    large, long = size[wide], time[wide]
    rates = _resampled_rates(large, long)
    rate = _rate(large, long)
    return Curve(
        size_bytes=size,
        time_s=time,
        spikes=raw > time * (1 + 1e-12),
        latency_s=latency,
        bytes_per_s=rate,
        bytes_per_s_low=min(float(np.quantile(rates, 0.05)), rate),
        bytes_per_s_high=max(float(np.quantile(rates, 0.95)), rate),
        left_out_error=_leave_one_out_error(size, time),
    )


def interpolated_s(curve: Curve, size_bytes: Numeric) -> Numeric:
    """Seconds of a message of any size.

    >>> import numpy as np
    >>> points = np.array([1e3, 1e6, 1e9])
    >>> found = fit(size_bytes=points, time_s=1e-5 + points / 1e10)
    >>> round(float(interpolated_s(found, 4e9)), 3)
    0.4
    """
    size = np.asarray(size_bytes, dtype=float)
    inside = np.exp(np.interp(np.log(size), np.log(curve.size_bytes), np.log(curve.time_s)))
    first, last = curve.size_bytes[0], curve.size_bytes[-1]
    beyond = curve.time_s[-1] + (size - last) / curve.bytes_per_s
    below = np.minimum(curve.time_s[0], curve.latency_s)
    return np.where(size > last, beyond, np.where(size < first, below, inside))[()]


def _rate(size: Column, time: Column) -> float:
    """Bandwidth of the line with the least relative errors."""
    rows = np.stack([1 / time, size / time], axis=1)
    (latency, per_byte), *_ = np.linalg.lstsq(rows, np.ones(len(size)), rcond=None)
    if per_byte <= 0 or latency < 0:  # then the line goes through the origin
        per_byte = float(np.sum(size / time) / np.sum(np.square(size / time)))
    return float(1 / per_byte)


def _resampled_rates(size: Column, time: Column) -> Column:
    random = np.random.default_rng(SEED)
    found = []
    for _ in range(RESAMPLED):
        rows = np.unique(random.integers(0, len(size), len(size)))
        found.append(_rate(size[rows], time[rows]) if len(rows) > 1 else size[rows] / time[rows])
    return np.array([float(np.squeeze(x)) for x in found])


def _leave_one_out_error(size: Column, time: Column) -> float:
    """Leave-one-out errors: each inner point against the line between its neighbours, in
    logarithms."""
    x, y = np.log(size), np.log(time)
    share = (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
    between = y[:-2] + share * (y[2:] - y[:-2])
    return float(np.median(np.abs(np.expm1(between - y[1:-1]))))
