"""Availability of spot capacity: traces of uptimes, their averages, and simulated traces.

A trace is a circle: it starts again at its end, so an uptime that spans both ends is one uptime.

[M58] Morse, "Queues, Inventories and Maintenance", Wiley 1958, and [C55] Cox, "A use of complex
      probabilities in the theory of stochastic processes", 1955: phases for times that vary more
      than an exponential (CV > 1), or less.
[W82] Whitt, "Approximating a point process by a renewal process, I", Operations Research 30(1),
      1982, section 3: the two phases with balanced means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import RuncastError
from core.units import DAY_S

Column = NDArray[np.float64]
LEAST_CV = 1e-3  # below, all uptimes are equal
ROUNDING_S = 1e-6  # a spell with less than this left is over


class TraceError(RuncastError):
    """A trace of spot capacity cannot be read or used."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Spells in which capacity is up, in order, within `length_s` seconds. A spell that starts when
    the one before it ends is capacity that was preempted and available again at once."""

    starts_s: Column
    ends_s: Column
    length_s: float

    def __post_init__(self) -> None:
        starts, ends = self.starts_s, self.ends_s
        if starts.ndim != 1 or starts.shape != ends.shape:
            raise TraceError("A trace has as many starts as ends, in two columns.")
        if not (np.isfinite(self.length_s) and self.length_s > 0):
            raise TraceError("The length of a trace is a number of seconds above 0.")
        if not (np.isfinite(starts).all() and np.isfinite(ends).all()):
            raise TraceError("The times of a trace are finite numbers.")
        if not (starts < ends).all():
            raise TraceError("A spell of a trace ends after it starts.")
        if not (starts[1:] >= ends[:-1]).all():
            raise TraceError("The spells of a trace are in order and do not overlap.")
        if starts.size and (starts[0] < 0 or ends[-1] > self.length_s):
            raise TraceError("The spells of a trace lie between 0 and its length.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStatistics:
    """Averages of one trace. Never NaN: see `statistics` for traces with no or one preemption."""

    up_mean_s: float  # between preemptions; infinite where there is none
    up_cv: float  # standard deviation over mean of the uptimes: 1 if exponential, more in bursts
    down_mean_s: float  # 0 without outages; infinite where capacity never comes
    available_fraction: float
    preemptions_per_day: float  # of uptime: what an instance sees that always runs
    num_spells: int  # number of uptimes; one that spans the end of the trace counts once


def statistics(trace: Trace) -> TraceStatistics:
    """Averages of a trace, taken as a circle. `up_cv` is 0 with fewer than two uptimes.

    >>> up = Trace(starts_s=np.array([0.0, 50.0]), ends_s=np.array([20.0, 90.0]), length_s=100.0)
    >>> s = statistics(up)
    >>> s.up_mean_s, s.down_mean_s, s.available_fraction, round(s.up_cv, 3)
    (30.0, 20.0, 0.6, 0.333)
    """
    ups = trace.ends_s - trace.starts_s
    up_s = float(ups.sum())
    down_s = max(trace.length_s - up_s, 0.0)
    if not ups.size:
        return TraceStatistics(
            up_mean_s=0.0, up_cv=0.0, down_mean_s=float("inf"), available_fraction=0.0,
            preemptions_per_day=0.0, num_spells=0,
        )  # fmt: skip
    if over_the_end(trace):
        ups = np.append(ups[1:-1], ups[0] + ups[-1]) if ups.size > 1 else ups[:0]
    count = ups.size
    return TraceStatistics(
        up_mean_s=up_s / count if count else float("inf"),
        up_cv=float(ups.std() / ups.mean()) if count > 1 else 0.0,
        down_mean_s=down_s / count if count else 0.0,
        available_fraction=min(up_s / trace.length_s, 1.0),
        preemptions_per_day=count / up_s * DAY_S,
        num_spells=max(count, 1),
    )


def over_the_end(trace: Trace) -> bool:
    """Whether the last spell continues in the first one when the trace starts again."""
    starts, ends = trace.starts_s, trace.ends_s
    return bool(starts.size) and starts[0] == 0 and ends[-1] == trace.length_s


def drawn(
    *, up_mean_s: float, down_mean_s: float, up_cv: float, length_s: float, seed: int
) -> Trace:
    """A simulated trace: independent uptimes of this mean and CV, exponential outages between.

    Uptimes are exponential at CV 1, of two phases with balanced means above it [W82] [M58], and
    gamma below it (Erlang where 1 / CV^2 is whole). With a mean outage of 0 capacity is always
    available. Give each zone its own seed.

    >>> trace = drawn(up_mean_s=2e4, down_mean_s=5e3, up_cv=2.0, length_s=1e9, seed=1)
    >>> s = statistics(trace)
    >>> round(s.available_fraction, 2), round(s.up_cv, 1)
    (0.8, 2.0)
    """
    _check(up_mean_s=up_mean_s, down_mean_s=down_mean_s, up_cv=up_cv, length_s=length_s)
    if down_mean_s == 0:
        return Trace(starts_s=np.zeros(1), ends_s=np.array([length_s]), length_s=length_s)
    random = np.random.default_rng(seed)
    cycle_s = up_mean_s + down_mean_s
    starts_up = random.random() < up_mean_s / cycle_s
    # A first outage of length 0 is a trace that starts with capacity; later outages are as drawn.
    downs, ups = np.zeros(0), np.zeros(0)
    while downs.sum() + ups.sum() < length_s:
        count = int(1.1 * length_s / cycle_s) + 20
        downs = np.append(downs, random.exponential(down_mean_s, count))
        ups = np.append(ups, _uptimes_s(random, up_mean_s, up_cv, count))
        downs[0] = 0.0 if starts_up else downs[0]
    edges = np.cumsum(np.column_stack([downs, ups]).ravel())
    starts, ends = edges[0::2], np.minimum(edges[1::2], length_s)
    kept = (starts < length_s) & (starts < ends)
    return Trace(starts_s=starts[kept], ends_s=ends[kept], length_s=length_s)


def _uptimes_s(random: np.random.Generator, mean_s: float, cv: float, count: int) -> Column:
    if cv < LEAST_CV:
        return np.full(count, mean_s)
    if cv <= 1:
        shape = 1 / cv**2
        return random.gamma(shape, mean_s / shape, count)
    # Short and long phase, each half of the mean: [W82], section 3.
    often = (1 + np.sqrt((cv**2 - 1) / (cv**2 + 1))) / 2
    phase = np.where(random.random(count) < often, often, 1 - often)
    return random.exponential(mean_s / (2 * phase), count)


def _check(**given: float) -> None:
    for name, value in given.items():
        least = "at least 0" if name in ("down_mean_s", "up_cv") else "above 0"
        fine = value >= 0 if name in ("down_mean_s", "up_cv") else value > 0
        if not (np.isfinite(value) and fine):
            raise TraceError(f"{name} is {value:g}: a drawn trace needs a number {least}.")


class Capacity:
    """Zones of spot capacity, evaluated at many times at once."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._zones = [_circle(trace) for trace in traces]

    def at(self, times_s: Column) -> tuple[Column, Column]:
        """Seconds that the first zone that is up stays up (0: none is up), and seconds until one is
        up (0: one is). Infinite where a zone never goes, or none ever comes."""
        up_s, wait_s = np.zeros(times_s.shape), np.full(times_s.shape, np.inf)
        for starts, ends, length_s in self._zones:
            if not starts.size:
                continue
            phase = times_s % length_s
            spell = np.searchsorted(ends, phase + ROUNDING_S, side="right")
            begins_in = starts[spell] - phase
            is_up = begins_in <= ROUNDING_S
            up_s = np.where((up_s == 0) & is_up, ends[spell] - phase, up_s)
            wait_s = np.minimum(wait_s, np.where(is_up, 0.0, begins_in))
        return up_s, wait_s


def _circle(trace: Trace) -> tuple[Column, Column, float]:
    """Starts and ends of a trace, extended so that every time of a lap finds a spell."""
    starts, ends, length_s = trace.starts_s, trace.ends_s, trace.length_s
    if not starts.size:
        return starts, ends, length_s
    if not over_the_end(trace):
        return (
            np.append(starts, starts[0] + length_s),
            np.append(ends, ends[0] + length_s),
            length_s,
        )
    if starts.size == 1:
        return starts, np.array([np.inf]), length_s
    return starts, np.append(ends[:-1], length_s + ends[0]), length_s
