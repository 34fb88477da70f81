"""Arithmetic behind published claims, and the verdict on each.

[R20] Rajbhandari et al., "ZeRO", SC 2020, arXiv:1910.02054, section 5 and figure 1.
[N21] Narayanan et al., arXiv:2104.04473, section 2.2.2 (bubble) and section 5.1 (6 FLOPs a
      parameter and token without recompute and attention).
"""

from __future__ import annotations

import numpy as np

from core.evidence.published_claims import Accounting, Rule, Verdict
from core.money.cost import gpu_hours as whole_gpu_hours
from core.numeric import Numeric, ceil_div
from core.units import HOUR_S


def state_saving(*, accounting: Accounting, stage: int, shards: Numeric) -> Numeric:
    """How many times less model state a GPU holds under ZeRO stage 1, 2 or 3. [R20, figure 1]

    Infinitely many shards give the limits that are often printed as the figure.

    >>> round(float(state_saving(accounting=ACCOUNTINGS[0], stage=1, shards=64.0)), 2)
    3.82
    """
    a = accounting
    parts = ((a.optimizer_bytes, 1), (a.gradient_bytes, 2), (a.parameter_bytes, 3))
    kept = sum(np.divide(size, shards) if stage >= from_ else size for size, from_ in parts)
    return a.total_bytes / kept


def num_gpus_that_hold(
    *, total_bytes: Numeric, memory_bytes: Numeric, gpus_per_node: Numeric
) -> Numeric:
    """GPUs, in whole nodes, whose memory holds the bytes and nothing else.

    >>> float(num_gpus_that_hold(total_bytes=6.48e12, memory_bytes=85e9, gpus_per_node=8.0))
    80.0
    """
    return ceil_div(total_bytes, np.multiply(memory_bytes, gpus_per_node)) * gpus_per_node


def microbatches_of_bubble(
    *, pp: Numeric, virtual_stages: Numeric, bubble_fraction: Numeric
) -> Numeric:
    """Micro-batches at which a pipeline idles this share of its ideal time. [N21, 2.2.2]

    >>> float(microbatches_of_bubble(pp=8.0, virtual_stages=1.0, bubble_fraction=0.125))
    56.0
    """
    return np.subtract(pp, 1.0) / np.multiply(virtual_stages, bubble_fraction)


def tokens_per_s(
    *, num_gpus: Numeric, peak_flops_per_s: Numeric, mfu: Numeric, flops_per_token: Numeric
) -> Numeric:
    """Tokens per second at a given utilisation of the peak. [N21, section 5.1, solved for T]"""
    return np.multiply(num_gpus, peak_flops_per_s) * mfu / flops_per_token


def run_hours(*, num_tokens: Numeric, tokens_per_s: Numeric) -> Numeric:
    """Hours that a number of tokens takes at a constant rate."""
    return np.divide(num_tokens, tokens_per_s) / HOUR_S


def run_gpu_hours(*, num_gpus: Numeric, days: Numeric) -> Numeric:
    """GPU-hours of a job of so many days.

    >>> float(run_gpu_hours(num_gpus=256.0, days=25.0))
    153600.0
    """
    return whole_gpu_hours(
        wall_clock_hours=np.multiply(days, 24.0), num_instances=num_gpus, gpus_per_instance=1.0
    )


def throughput_lost(slowdown: Numeric) -> Numeric:
    """Share of the throughput that is lost when a step takes `slowdown` times as long.

    >>> float(throughput_lost(4.0))
    0.75
    """
    return 1 - np.divide(1.0, slowdown)


def interruptions_per_week(*, count: Numeric, days: Numeric, gpus: Numeric) -> Numeric:
    """Interruptions a week per 1,000 GPUs, if all GPUs fail at one rate.

    >>> float(interruptions_per_week(count=32.0, days=14.0, gpus=16_000.0))
    1.0
    """
    return np.divide(count, days) * 7.0 * 1000.0 / gpus


def verdict(
    *,
    rule: Rule,
    ours_low: float,
    ours_high: float,
    printed_low: float,
    printed_high: float,
    tolerance: float,
    limit: float | None = None,
) -> Verdict:
    """Verdict of the arithmetic on a printed figure.

    `equals`: our range meets the printed one, widened by `tolerance` (a fraction: how exactly the
    figure is printed). Where it does not, but `limit` (our figure in the best case: ever more GPUs,
    the best run ever published) does, the figure is a limit. `fits`: what we need is at most what
    is printed. `input`: a figure that cannot be derived here; it is shown with its source.
    """
    low, high = printed_low * (1 - tolerance), printed_high * (1 + tolerance)
    if rule == "input":
        return "input"
    if rule == "fits":
        return "reproduced" if ours_high <= high else "refuted"
    if ours_low <= high and ours_high >= low:
        return "reproduced"
    if limit is not None and low <= limit <= high:
        return "reproduced as a limit"
    return "refuted"
