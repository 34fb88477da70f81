"""Simulation of a job that fails, event by event: where there is no closed form, and as a test.

Shares no formula with core/failures/goodput.py: uptimes are drawn, and each is followed to see what
work it kept. Uptimes may be exponential or Weibull (shape below 1: failures come in bursts), and a
notice may precede the stop, in which a last checkpoint succeeds with probability q.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
MAX_UPTIMES = 100_000  # failures of one trial; beyond, the job counts as one that never finishes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Result of each trial; infinite where it was given up."""

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
    """Simulate a job `trials` times. Symbols as in core/failures/goodput.py; the mean uptime is
    1 / failures_per_s for every shape. Work goes on from a checkpoint in the middle of an
    interval after a notice, and from the last uploaded one without."""
    random = np.random.default_rng(seed)
    intervals = max(1, int(np.ceil(work_s / interval_s - 1e-9)))
    piece = work_s / intervals
    scale = 1 / failures_per_s / gamma(1 + 1 / weibull_shape) if failures_per_s else np.inf
    ended = {n: np.full(trials, np.inf) for n in ("total", "up")}
    ended |= {n: np.zeros(trials) for n in ("wait", "reload", "failures")}
    # Only the trials that still run, as columns; `rows` has their row numbers.
    rows = np.arange(trials)
    now = {n: np.zeros(trials) for n in (*ended, "whole", "part")}
    for attempt in range(MAX_UPTIMES):
        up = scale * _uptimes(random, weibull_shape, rows.size)
        loading = reload_s if attempt else 0.0
        left = intervals - now["whole"]
        needed = (loading + upload_s) + left * (piece + checkpoint_s) - now["part"]
        if (done := up >= needed).any():
            now["total"][done] += needed[done]
            now["up"][done] += needed[done]
            now["reload"][done] += loading
            for name, column in ended.items():
                column[rows[done]] = now[name][done]
            rows, up = rows[~done], up[~done]
            now = {n: column[~done] for n, column in now.items()}
        if not rows.size:
            break
        now["failures"] += 1
        now["total"] += up + down_s
        if wait_s:
            wait = random.exponential(wait_s, rows.size)
            now["total"] += wait
            now["wait"] += wait
        now["up"] += up
        now["reload"] += np.minimum(up, loading)
        _go_back(
            now,
            np.maximum(up - loading, 0.0),
            random.random(rows.size) < notice_probability if notice_probability else None,
            piece=piece, checkpoint_s=checkpoint_s, upload_s=upload_s,
        )  # fmt: skip
    for name in ("wait", "reload", "failures"):
        ended[name][rows] = now[name]
    return Trials(
        total_s=ended["total"],
        uptime_s=ended["up"],
        waiting_s=ended["wait"],
        reload_s=ended["reload"],
        failures=ended["failures"].astype(np.int64),
    )


def _uptimes(random: np.random.Generator, shape: float, size: int) -> Column:
    """Uptimes of scale 1."""
    return random.standard_exponential(size) if shape == 1 else random.weibull(shape, size)


def _go_back(
    now: dict[str, Column],
    trained: Column,
    noticed: NDArray[np.bool_] | None,
    *,
    piece: float,
    checkpoint_s: float,
    upload_s: float,
) -> None:
    """Where each trial resumes after it trained for `trained` seconds and was stopped: whole
    intervals that are safe, and work into the next one."""
    part = now["part"]
    first = piece - part  # work up to the next checkpoint
    safe = _intervals_ended(trained - upload_s, first, piece, checkpoint_s)
    stayed = np.where(safe == 0, part, 0.0)  # an older checkpoint in mid-interval still holds
    if noticed is None:
        now["part"] = stayed
        now["whole"] += safe
        return
    reached = _intervals_ended(trained, first, piece, checkpoint_s)
    inside = _work_inside(trained, reached, first, piece, checkpoint_s)
    kept = np.where(reached == 0, part + inside, inside)
    now["part"] = np.where(noticed, kept, stayed)
    now["whole"] += np.where(noticed, reached, safe)


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
