"""A job that fails, played through event by event: for what has no closed form, and as its test.

Shares no formula with core/goodput.py: uptimes are drawn, and each is walked through to see what
it left. Beside exponential uptimes it knows Weibull ones (shape below 1: failures come in bursts)
and a notice before the stop, in which a last checkpoint succeeds with probability q.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
MAX_UPTIMES = 100_000  # of one trial; beyond, the job is taken for one that never finishes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """What each trial came to; infinite where it was given up."""

    total_s: Column
    uptime_s: Column
    waiting_s: Column
    reload_s: Column
    failures: NDArray[np.int64]


def play(
    *,
    work_s: float,
    interval_s: float,
    checkpoint_s: float,
    failures_per_s: float,
    seed: int,
    upload_s: float = 0.0,
    down_s: float = 0.0,
    wait_s: float = 0.0,
    reload_s: float = 0.0,
    weibull_shape: float = 1.0,
    notice_probability: float = 0.0,
    trials: int = 40_000,
) -> Trials:
    """Play a job `trials` times. Symbols as in core/goodput.py; the mean uptime is
    1 / failures_per_s for every shape. Work goes on from a checkpoint in the middle of an
    interval after a notice, and from the last uploaded one without."""
    random = np.random.default_rng(seed)
    intervals = max(1, int(np.ceil(work_s / interval_s - 1e-9)))
    piece = work_s / intervals
    scale = 1 / failures_per_s / gamma(1 + 1 / weibull_shape) if failures_per_s else np.inf
    sums = {n: np.zeros(trials) for n in ("total", "up", "wait", "reload")}
    failures = np.zeros(trials, dtype=np.int64)
    whole, part = np.zeros(trials), np.zeros(trials)  # safe intervals, and work into the next
    running = np.arange(trials)
    for attempt in range(MAX_UPTIMES):
        up = scale * random.weibull(weibull_shape, running.size)
        loading = reload_s if attempt else 0.0
        left = intervals - whole[running]
        first = piece - part[running]  # work up to the next checkpoint
        needed = loading + (left * piece - part[running]) + left * checkpoint_s + upload_s
        done = up >= needed
        ended = running[done]
        sums["total"][ended] += needed[done]
        sums["up"][ended] += needed[done]
        sums["reload"][ended] += loading
        running, up, first = running[~done], up[~done], first[~done]
        if not running.size:
            break
        failures[running] += 1
        wait = random.exponential(wait_s, running.size) if wait_s else np.zeros(running.size)
        sums["total"][running] += up + down_s + wait
        sums["up"][running] += up
        sums["wait"][running] += wait
        sums["reload"][running] += np.minimum(up, loading)
        trained = np.maximum(up - loading, 0.0)
        safe = _intervals_ended(trained - upload_s, first, piece, checkpoint_s)
        noticed = random.random(running.size) < notice_probability
        reached = _intervals_ended(trained, first, piece, checkpoint_s)
        inside = _work_inside(trained, reached, first, piece, checkpoint_s)
        before = part[running]
        stayed = np.where(safe == 0, before, 0.0)  # an older checkpoint in mid-interval still holds
        kept = np.where(reached == 0, before + inside, inside)
        part[running] = np.where(noticed, kept, stayed)
        whole[running] += np.where(noticed, reached, safe)
    for name in ("total", "up"):
        sums[name][running] = np.inf
    return Trials(
        total_s=sums["total"],
        uptime_s=sums["up"],
        waiting_s=sums["wait"],
        reload_s=sums["reload"],
        failures=failures,
    )


def _intervals_ended(trained: Column, first: Column, piece: float, checkpoint_s: float) -> Column:
    """Checkpoints that were written in `trained` seconds: the first one comes after `first`."""
    further = np.floor((trained - first - checkpoint_s) / (piece + checkpoint_s))
    return np.where(trained >= first + checkpoint_s, 1 + further, 0.0)


def _work_inside(
    trained: Column, ended: Column, first: Column, piece: float, checkpoint_s: float
) -> Column:
    """Work since the last of these checkpoints."""
    since = np.where(
        ended == 0, trained, trained - first - checkpoint_s - (ended - 1) * (piece + checkpoint_s)
    )
    return np.minimum(since, np.where(ended == 0, first, piece))
