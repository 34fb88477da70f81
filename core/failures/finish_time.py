"""Finish time of a job that may fail: P50 and P90, by inversion and by a quick fit.

The transform of the time in excess of the failure-free one follows from the renewal at each
checkpoint (core/failures/goodput.py has the symbols); d(s) is the transform of the downtime:

    phi_x(s) = lambda / (lambda + s) (1 - e^(-(lambda + s) x))       an uptime cut short before x
    rec(s)   = d(s) e^(-(lambda + s)(R + S)) / (1 - d(s) phi_(R+S)(s))      from failure to reloaded
    segment  = e^(-lambda a) / (1 - phi_a(s) rec(s)),    all = segment^n x the one exposed upload

[AW95] Abate and Whitt, "Numerical inversion of Laplace transforms of probability distributions",
       ORSA Journal on Computing 7(1), 1995: algorithm EULER.
[WH31] Wilson and Hilferty, "The distribution of chi-square", PNAS 17, 1931: gamma quantiles.
"""

from __future__ import annotations

from functools import cache
from math import comb, pi
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.failures.goodput import (
    Job,
    expected_s,
    failure_free_s,
    no_failure_probability,
    num_segments,
    segment_s,
    variance_s2,
)
from core.failures.time_factor import through_quantiles
from core.numeric import Numeric

DECAY, TERMS, AVERAGED = 22.0, 40, 14  # A, N and M of [AW95]: a discretisation error of e^-22
HALVINGS = 20  # of a bracket a few times the answer: to one part in a million
# Below this deviation over mean the excess is close to normal, and too narrow to invert.
NARROW = 0.05
_FIELDS = (
    "work_s", "interval_s", "checkpoint_s", "failures_per_s", "upload_s", "down_s", "wait_s",
    "reload_s",
)  # fmt: skip


def done_within(job: Job, time_s: Numeric) -> Numeric:
    """Probability that the job is done within `time_s`, to about 0.001. [AW95] For a few jobs, not
    for columns of thousands. One minus it is the probability of missing a deadline."""
    rows, shape = _rows(job, time_s)
    excess = np.broadcast_to(time_s, shape).ravel() - np.asarray(failure_free_s(rows))
    found = np.where(excess < 0, 0.0, np.asarray(no_failure_probability(rows)))
    later = (excess > 0) & np.isfinite(np.asarray(expected_s(rows)))
    mean = np.asarray(expected_s(rows)) - np.asarray(failure_free_s(rows))
    narrow = np.asarray(variance_s2(rows)) < (NARROW * mean) ** 2
    if (some := later & ~narrow).any():
        found[some] = _excess_within(_of(rows, some), excess[some])
    if (some := later & narrow).any():
        found[some] = _quick_excess_within(_of(rows, some), excess[some])
    return np.clip(found, 0.0, 1.0).reshape(shape)[()]


def quantile_s(job: Job, p: float) -> Numeric:
    """Seconds within which the job is done with probability p, to about 0.1%, by bisection of
    `done_within`. Infinite where the job never finishes. Some ten milliseconds a job."""
    rows, shape = _rows(job)
    least = np.asarray(failure_free_s(rows))
    low, high = least, np.maximum(_not_after_s(rows, p), least)
    ends = np.isfinite(high)
    high = np.where(ends, high, least)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        early = np.asarray(done_within(rows, middle)) < p
        low, high = np.where(early, middle, low), np.where(early, high, middle)
    at_once = np.asarray(no_failure_probability(rows)) >= p
    found = np.where(ends, np.where(at_once, least, high), np.inf)
    return found.reshape(shape)[()]


def mixed_quantile_s(jobs: Job, p: float) -> float:
    """Seconds within which a job is done with probability p, where each job of a column is equally
    likely to be the true one: for example one for each error of the forecast."""
    rows, _ = _rows(jobs)
    low = float(np.min(failure_free_s(rows)))
    # Where each of them is done with probability p, their mixture is, too.
    high = max(low, float(np.max(_not_after_s(rows, p))))
    if not np.isfinite(high):
        return float("inf")
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        early = float(np.mean(done_within(rows, middle))) < p
        low, high = (middle, high) if early else (low, middle)
    return high


def quick_quantiles_s(job: Job, *wanted: float) -> tuple[Numeric, ...]:
    """Approximate quantiles for columns of any length: the probability of no failure is exact, and
    the excess given a failure is a gamma of its mean and variance, by [WH31]. Within 0.5% of the
    simulation in the regimes of the tests; 2 to 5% off where one or two long fixed delays
    decide."""
    least = failure_free_s(job)
    atom = np.asarray(no_failure_probability(job), dtype=float)
    expected = expected_s(job)
    finishes = np.isfinite(expected)
    found = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = np.maximum(expected - least, 0.0)
        fails = -np.expm1(-np.multiply(job.failures_per_s, least))
        mean = excess / fails
        variance = np.maximum((variance_s2(job) + excess**2) / fails - mean**2, 0.0)
        one_in = variance / (9 * mean**2)  # 1 / (9 shape)
        deviation = np.sqrt(one_in)
        for p in wanted:
            z = _normal_quantile((p - atom) / fails)
            within = mean * np.maximum(1 - one_in + z * deviation, 0.0) ** 3
            found.append(np.where(finishes, np.where(atom >= p, least, least + within), np.inf)[()])
    return tuple(found)


def _quick_excess_within(job: Job, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantile of the excess from a gamma of its mean and variance. [WH31]"""
    mean = np.asarray(expected_s(job)) - np.asarray(failure_free_s(job))
    one_in = np.asarray(variance_s2(job)) / (9 * mean**2)
    probabilities, z = _normal_table()
    return np.interp((np.cbrt(t / mean) - 1 + one_in) / np.sqrt(one_in), z, probabilities)


def _not_after_s(job: Job, p: float) -> NDArray[np.float64]:
    """Cantelli: no quantile is further above the mean than sqrt(p / (1 - p)) deviations."""
    with np.errstate(invalid="ignore"):
        return np.asarray(expected_s(job) + np.sqrt(p / (1 - p) * variance_s2(job)))


def _rows(job: Job, *others: Numeric) -> tuple[Job, tuple[int, ...]]:
    """The job with all fields as columns of one length, and its original shape."""
    fields = [getattr(job, name) for name in _FIELDS]
    shape = np.broadcast_shapes(*map(np.shape, (*fields, *others)))
    wide = [np.broadcast_to(f, shape).astype(float).ravel() for f in fields]
    return Job(**dict(zip(_FIELDS, wide, strict=True))), shape


def _of(job: Job, some: NDArray[np.bool_]) -> Job:
    return Job(**{name: getattr(job, name)[some] for name in _FIELDS})


def _excess_within(job: Job, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(excess <= t) for every row, t > 0; the atom of no failure is taken out first. [AW95]"""
    k = np.arange(TERMS + AVERAGED + 1)
    s = (DECAY + 2j * pi * k) / (2 * t[:, None])
    atom = np.asarray(no_failure_probability(job))[:, None]
    values = np.real((_excess_transform(job, s) - atom) / s)
    values[:, 0] *= 0.5
    sums = np.cumsum((-1.0) ** k * values, axis=1)[:, TERMS:] * (np.exp(DECAY / 2) / t)[:, None]
    weights = np.array([comb(AVERAGED, i) for i in range(AVERAGED + 1)]) / 2.0**AVERAGED
    return sums @ weights + atom[:, 0]


def _excess_transform(job: Job, s: NDArray[Any]) -> NDArray[Any]:
    """Transform of the excess, a row a job and a column a frequency."""

    def column(value: Numeric) -> NDArray[np.float64]:
        return np.asarray(value, dtype=float)[:, None]

    rate, upload = column(job.failures_per_s), column(job.upload_s)
    reload, a = column(job.reload_s) + upload, column(segment_s(job))
    down = np.exp(-s * column(job.down_s)) / (1 + s * column(job.wait_s))

    def cut_short(x: NDArray[np.float64]) -> NDArray[Any]:
        return rate / (rate + s) * -np.expm1(-(rate + s) * x)

    restarted = down * np.exp(-rate * reload) / (1 - down * cut_short(reload))
    recovery = restarted * np.exp(-s * reload)
    segments = np.exp(column(num_segments(job)) * (-rate * a - np.log(1 - cut_short(a) * recovery)))
    # The excess is over S: e^(sS) is merged into the reload, so that nothing grows with s.
    exposed = np.exp(-rate * upload) + cut_short(upload) * restarted * np.exp(
        -s * (reload - upload)
    )
    return segments * exposed


@cache
def _normal_table() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    z = np.linspace(-6.0, 6.0, 4801)
    return np.array([NormalDist().cdf(value) for value in z]), z


def _normal_quantile(p: Numeric) -> Numeric:
    """Standard normal quantile of a column, to six digits between 0.001 and 0.999."""
    probabilities, z = _normal_table()
    return np.interp(p, probabilities, z)


def equally_likely(
    *, p50: float, p90: float, p10: float | None = None, count: int = 25
) -> NDArray[np.float64]:
    """A column that represents a shifted log-normal quantity (core/failures/time_factor.py): the
    middles of equally likely slices. Without a P10 it is as far below the P50 as the P90 is above.

    >>> [round(float(x), 3) for x in equally_likely(p50=1.0, p90=1.1, count=3)]
    [0.931, 1.0, 1.075]
    >>> [round(float(x), 3) for x in equally_likely(p10=0.95, p50=1.0, p90=1.1, count=3)]
    [0.959, 1.0, 1.069]
    """
    middles = (np.arange(count) + 0.5) / count
    z = np.array([NormalDist().inv_cdf(float(p)) for p in middles])
    low = p50**2 / p90 if p10 is None else p10
    if not low < p50 < p90:
        return np.full(count, p50)
    scale, width = through_quantiles(p90 / p50 - 1, 1 - low / p50)
    return p50 * (1 + scale * np.expm1(z * width))
