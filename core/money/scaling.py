"""How many GPUs, and when: savings of more GPUs and of waiting for a lower price.

Columns run over GPU counts, ascending."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from core.numeric import Numeric

DOUBLINGS = 10
Floats = NDArray[np.float64]


def counts_around(*, num_gpus: int, per_instance: int, most: int) -> list[int]:
    """GPU counts to compare, ascending: powers of two of an instance over ten doublings around
    `num_gpus`, whole instances half-way between, the count itself, its half and its double.

    >>> counts_around(num_gpus=64, per_instance=8, most=512)
    [8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512]
    """
    at, last = (int(np.log2(max(n / per_instance, 1))) for n in (num_gpus, most))
    first = max(min(at - DOUBLINGS // 2, last - DOUBLINGS), 0)
    powers = [per_instance * 2**k for k in range(first, first + DOUBLINGS + 1)]
    between = [n + n // 2 for n in powers[:-1] if (n // 2) % per_instance == 0]
    half_and_double = [num_gpus, 2 * num_gpus]
    half_and_double += [num_gpus // 2] if num_gpus % (2 * per_instance) == 0 else []
    return sorted(n for n in {*powers, *between, *half_and_double} if n <= most)


def efficiency(tokens_per_s_per_gpu: Floats) -> Floats:
    """Throughput per GPU over that at the first count.

    >>> efficiency(np.array([10.0, 9.0])).tolist()
    [1.0, 0.9]
    """
    return np.asarray(tokens_per_s_per_gpu / tokens_per_s_per_gpu[0])


def usd_per_day_saved(
    *, usd: Numeric, hours: Numeric, more_usd: Numeric, fewer_hours: Numeric
) -> Numeric:
    """Dollars per day saved, from one count to a larger one; below 0: it is cheaper, too. NaN where
    it is not faster.

    >>> float(usd_per_day_saved(usd=100.0, hours=72.0, more_usd=160.0, fewer_hours=48.0))
    60.0
    """
    days = np.subtract(hours, fewer_hours) / 24
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(days > 0, np.subtract(more_usd, usd) / days, np.nan)[()]


def time_saved(*, hours: Numeric, fewer_hours: Numeric) -> Numeric:
    """Share of the time that a larger count saves: one half for an ideal doubling.

    >>> time_saved(hours=10.0, fewer_hours=6.0)
    0.4
    """
    return 1 - fewer_hours / hours


def waiting_saves_usd(*, usd: Numeric, log_per_month: Numeric, months: Numeric) -> Numeric:
    """Dollars that a run costs less after `months` at a steady trend of the price.

    >>> round(float(waiting_saves_usd(usd=1000.0, log_per_month=-0.01, months=10.0)), 1)
    95.2
    """
    return -usd * np.expm1(np.multiply(log_per_month, months))


def break_even_drop(*, usd: Numeric, usd_per_day: Numeric, days: Numeric) -> Numeric:
    """Share by which the price must fall within these days for waiting to pay, where a day is worth
    `usd_per_day`. Above 1: no fall is enough.

    >>> break_even_drop(usd=300_000.0, usd_per_day=1000.0, days=30.0)
    0.1
    """
    return usd_per_day * days / usd
