"""Timing of a call: warm-up, samples, median and spread."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from runners.probes.rows import Row

Call = Callable[[], Any]

WARM_UP_CALLS = 3
WARM_UP_S = {"cpu": 0.02, "gpu": 0.2}
MIN_SAMPLES, MAX_SAMPLES = 7, 200
CPU_SAMPLE_S = 1e-3


def gpu_event() -> Any:
    event: Any = torch.cuda.Event  # untyped in torch
    return event(enable_timing=True)


def quantile(ordered: list[float], share: float) -> float:
    """Quantile by linear interpolation between the two nearest ordered values."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def summary(times: list[float], *, calls: int = 1, cold: bool = False) -> Row:
    """Summary of samples: median and spread, never only the best."""
    ordered = sorted(t / calls for t in times)
    median = statistics.median(ordered)
    iqr = quantile(ordered, 0.75) - quantile(ordered, 0.25)
    return {
        "t_med_s": median,
        "t_p10_s": quantile(ordered, 0.1),
        "t_p90_s": quantile(ordered, 0.9),
        "t_min_s": ordered[0],
        "rel_iqr": iqr / median if median > 0 else 0.0,
        "n": len(ordered),
        "calls_per_sample": calls,
        "cold_cache": cold,
    }


def event_samples(call: Call, n: int, *, flush: Call, sync: Call, event: Call) -> list[float]:
    """Seconds of n calls: each between two events, after a flush; one wait at the end."""
    pairs = [(event(), event()) for _ in range(n)]
    for start, end in pairs:
        flush()
        start.record()
        call()
        end.record()
    sync()
    return [start.elapsed_time(end) * 1e-3 for start, end in pairs]


def clock_samples(call: Call, *, calls: int, seconds: float, least: int, most: int) -> list[float]:
    """Seconds of samples of `calls` calls each, until the time is used up."""
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < least or (len(times) < most and time.perf_counter() - begin < seconds):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append(time.perf_counter() - start)
    return times


def warm_up(call: Call, sync: Call, *, seconds: float) -> float:
    """Call until both a count and a time are reached; returns seconds of one call of the last
    round."""
    begin = time.perf_counter()
    while True:
        start = time.perf_counter()
        for _ in range(WARM_UP_CALLS):
            call()
        sync()
        now = time.perf_counter()
        if now - begin >= seconds:
            return max((now - start) / WARM_UP_CALLS, 1e-9)
