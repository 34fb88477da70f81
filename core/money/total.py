"""Time and cost of a whole run, all in: mean, P10, P50 and P90, and the chance of a deadline.

A run is a start-up and its training, which has an uncertain speed, failures, restarts and, on spot,
preemptions. Where the work takes f times as long as forecast (median 1, a shifted log-normal:
core/failures/time_factor.py), training is a sum of f times as many segments, so each of its
cumulants grows with f. With m, v and t the first three at the forecast speed
(core/failures/goodput.py), cumulants by conditioning [B69] are

    k1 = m E[f],    k2 = v E[f] + m^2 Var[f],    k3 = t E[f] + 3 m v Var[f] + m^3 k3[f]

Dollars are paid hours times a price that may have moved since it was seen (a factor q, log-normal,
median 1), and costs that neither changes. One shifted log-normal of the same three cumulants [J94]
gives the quantiles and the chance of a deadline, so that they agree with the mean. It is exact
where speed or price alone is uncertain.

Validity: tests/core/money/test_total.py states how far it is from a simulation of the events. A
mean above the P90 is possible only where fewer than one run in ten fails, at a cost beyond all
other uncertainty.

[B69] Brillinger, "The calculation of cumulants via conditioning", Ann. Inst. Statist. Math. 21,
1969. [J94] Johnson, Kotz, Balakrishnan, "Continuous Univariate Distributions" 1, 1994, chapter 14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.failures.goodput import (
    Job,
    expected_s,
    failure_free_s,
    no_failure_probability,
    variance_s2,
)
from core.failures.time_factor import factor_at, factor_cumulants
from core.numeric import Z_90, Numeric
from core.units import HOUR_S

LEAST_SKEWNESS = 1e-3  # below it a shifted log-normal is a normal, and ill-conditioned
GIVEN_UP = 1000.0  # a run expected to take this many times its work does not end
Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cumulants:
    """Mean, variance and third central moment."""

    mean: Numeric
    variance: Numeric
    third: Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An uncertain quantity. Infinite: it never ends; NaN: not known."""

    expected: Numeric
    p10: Numeric
    p50: Numeric
    p90: Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What turns the training into a whole run, or a column of them."""

    startup_hours: Numeric
    least_billed_hours: Numeric
    usd_per_hour: Numeric  # of all machines; NaN: no price
    other_usd: Numeric  # storage, traffic, less credits
    sigma: Numeric  # of the logarithm of the speed
    price_sigma: Numeric  # of the logarithm of the price
    skew: Numeric = 0.0  # part by which `sigma` is more towards slower, and less towards faster


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Terms):
    """A whole run, or a column of runs."""

    job: Job  # training at the forecast speed, with every stop
    paid: Job  # of it, what is paid: without outages of spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The run all in."""

    hours: Outcome
    usd: Outcome
    chance_on_time: Numeric  # 1 without a deadline


def total(run: Run, *, deadline_hours: float | None = None) -> Total:
    """Hours and dollars of runs, and the chance that each ends by the deadline.

    >>> job = Job(work_s=36e5, interval_s=36e5, checkpoint_s=0.0, failures_per_s=0.0)
    >>> found = total(Run(job=job, paid=job, startup_hours=1.0, least_billed_hours=0.0,
    ...     usd_per_hour=2.0, other_usd=0.0, sigma=0.1, price_sigma=0.0), deadline_hours=1001.0)
    >>> [round(float(x), 1) for x in (found.hours.p50, found.hours.expected, found.usd.p50)]
    [1001.0, 1006.0, 2002.0]
    >>> round(float(found.chance_on_time), 3)
    0.5
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        trained = of_training(run.job)
        paid = trained if run.paid is run.job else of_training(run.paid)
        least_s = failure_free_s(run.job)
        return of_cumulants(trained, paid, run, least_s=least_s, deadline_hours=deadline_hours)


@np.errstate(invalid="ignore", divide="ignore", over="ignore")
def of_cumulants(
    training: Cumulants,
    paid: Cumulants,
    run: Terms,
    *,
    least_s: Numeric = 0.0,
    deadline_hours: float | None = None,
) -> Total:
    """The total of training with these cumulants at the forecast speed, in seconds, and of what of
    it is paid. `least_s`: of the training without a failure."""
    trained = at_uncertain_speed(training, run.sigma, run.skew)
    hours = _fitted(_hours(trained))
    start = np.asarray(run.startup_hours, dtype=float)
    chance: Numeric = np.ones_like(np.asarray(trained.mean, dtype=float))
    if deadline_hours is not None:
        chance = hours.below(deadline_hours - start)
    billed = hours
    if paid is not training:
        billed = _fitted(_hours(at_uncertain_speed(paid, run.sigma, run.skew)))
    least = np.asarray(run.least_billed_hours, dtype=float)
    cost = _fitted(_scaled(billed.at_least(start, least), run.price_sigma, run.usd_per_hour))
    usd = cost.outcome(run.other_usd)
    # Nobody pays less than the seller's least, whatever the fit says.
    floor = [
        run.usd_per_hour * np.maximum(least, start) * np.exp(z * np.asarray(run.price_sigma))
        + run.other_usd
        for z in (-Z_90, 0.0, Z_90)
    ]
    free = 0.0  # credits pay at most for the run
    whole = hours.outcome(start)
    # Nor does a run end sooner than without failures at its speed, whatever the fit says.
    alone = [
        start + np.asarray(least_s) / HOUR_S * factor_at(z, run.sigma, run.skew)
        for z in (-Z_90, 0.0, Z_90)
    ]
    return Total(
        hours=Outcome(
            expected=whole.expected,
            p10=np.maximum(whole.p10, alone[0]),
            p50=np.maximum(whole.p50, alone[1]),
            p90=np.maximum(whole.p90, alone[2]),
        ),
        usd=Outcome(
            expected=np.maximum(usd.expected, free),
            p10=np.maximum(np.maximum(usd.p10, floor[0]), free),
            p50=np.maximum(np.maximum(usd.p50, floor[1]), free),
            p90=np.maximum(np.maximum(usd.p90, floor[2]), free),
        ),
        chance_on_time=chance,
    )


def hours_of(
    training: Cumulants, *, sigma: Numeric, before_hours: Numeric, skew: Numeric = 0.0
) -> Outcome:
    """Hours of training with these cumulants, after others that are certain."""
    return _fitted(_hours(at_uncertain_speed(training, sigma, skew))).outcome(before_hours)


def of_training(job: Job) -> Cumulants:
    """Cumulants of the training in seconds: the third from the gamma that the excess over a run
    without failures is given some (core/failures/finish_time.py). Infinite: it never ends."""
    mean = np.asarray(expected_s(job), dtype=float)
    least = failure_free_s(job)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ends = mean < GIVEN_UP * np.asarray(job.work_s)
        variance = np.asarray(variance_s2(job), dtype=float)
        excess = np.maximum(mean - least, 0.0)
        fails = 1 - np.asarray(no_failure_probability(job), dtype=float)
        second = variance + excess**2
        given = np.where(fails > 0, excess / fails, 0.0)  # mean of the excess given some
        spread = np.where(given > 0, np.maximum(second / fails / given**2 - 1, 0.0), 0.0)
        raw = fails * given**3 * (1 + spread) * (1 + 2 * spread)
        third = np.maximum(raw - 3 * excess * second + 2 * excess**3, 0.0)
    return Cumulants(
        mean=np.where(ends, mean, np.inf),
        variance=np.where(ends, variance, np.inf),
        third=np.where(ends, third, np.inf),
    )


def at_uncertain_speed(found: Cumulants, sigma: Numeric, skew: Numeric = 0.0) -> Cumulants:
    """Cumulants where the work takes an uncertain factor longer. [B69]"""
    mean, var, third = factor_cumulants(sigma, skew)
    m = np.asarray(found.mean)
    return Cumulants(
        mean=m * mean,
        variance=found.variance * mean + m**2 * var,
        third=found.third * mean + 3 * m * found.variance * var + m**3 * third,
    )


def _scaled(found: Cumulants, sigma: Numeric, usd_per_hour: Numeric) -> Cumulants:
    """Cumulants of an hour's price times hours, the price uncertain by a log-normal factor."""
    mean, var, third = _of_factor(sigma)
    w = np.exp(np.square(sigma))
    m = np.asarray(found.mean)
    rate = np.asarray(usd_per_hour, dtype=float)
    with np.errstate(invalid="ignore"):
        return Cumulants(
            mean=rate * m * mean,
            variance=rate**2 * (found.variance * w**2 + m**2 * var),
            third=rate**3
            * (found.third * w**4.5 + 3 * m * found.variance * (w**4.5 - w**2.5) + m**3 * third),
        )


def _of_factor(sigma: Numeric) -> tuple[Numeric, Numeric, Numeric]:
    """Cumulants of a log-normal of median 1."""
    w = np.exp(np.square(sigma))
    grown = np.expm1(np.square(sigma))
    return np.sqrt(w), w * grown, w**1.5 * grown**2 * (w + 2)


def _hours(found: Cumulants) -> Cumulants:
    return Cumulants(
        mean=found.mean / HOUR_S,
        variance=found.variance / HOUR_S**2,
        third=found.third / HOUR_S**3,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """shift + e^(log_scale + width z), z standard normal. [J94]"""

    cumulants: Cumulants
    shift: Column
    scale: Column
    width: Column

    def outcome(self, more: Numeric) -> Outcome:
        """Mean and quantiles of this and `more`."""
        at = np.add(self.shift, more)
        stretch = np.exp(Z_90 * self.width)
        mean = np.asarray(self.cumulants.mean)
        ends = ~np.isinf(mean)
        return Outcome(
            expected=np.add(mean, more),
            p10=np.where(ends, at + self.scale / stretch, np.inf),
            p50=np.where(ends, at + self.scale, np.inf),
            p90=np.where(ends, at + self.scale * stretch, np.inf),
        )

    def below(self, limit: Numeric) -> Column:
        """Probability of at most `limit`."""
        over = np.subtract(limit, self.shift)
        z = np.where(over > 0, np.log(over / self.scale) / self.width, -np.inf)
        return np.where(np.isfinite(self.scale), normal_below(z), 0.0)

    def at_least(self, more: Numeric, least: Numeric) -> Cumulants:
        """Cumulants of max(this + more, least)."""
        k = self.cumulants
        some = np.add(self.shift, more)
        plain = Cumulants(mean=np.add(k.mean, more), variance=k.variance, third=k.third)
        below = self.below(np.subtract(least, more))
        if not (binds := below > 1e-9).any():
            return plain
        return _where(binds, self._floored(some, least, below), plain)

    def _floored(self, shift: Numeric, least: Numeric, below: Column) -> Cumulants:
        """Raw moments of the part above `least`, and an atom at it."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = np.log(np.maximum(np.subtract(least, shift), 0.0) / self.scale) / self.width
            over = [1 - below] + [
                self.scale**k
                * np.exp(k**2 * np.square(self.width) / 2)
                * normal_below(k * self.width - z)
                for k in (1, 2, 3)
            ]
            # Moments of the excess over `least`, which keeps small variances exact.
            gap = np.subtract(shift, least)
            first = over[1] + gap * over[0]
            second = over[2] + 2 * gap * over[1] + gap**2 * over[0]
            third = over[3] + 3 * gap * over[2] + 3 * gap**2 * over[1] + gap**3 * over[0]
        first, second, third = (np.maximum(x, 0.0) for x in (first, second, third))
        return Cumulants(
            mean=least + first,
            variance=np.maximum(second - first**2, 0.0),
            third=np.maximum(third - 3 * first * second + 2 * first**3, 0.0),
        )


def _where(rows: NDArray[np.bool_], some: Cumulants, others: Cumulants) -> Cumulants:
    return Cumulants(
        mean=np.where(rows, some.mean, others.mean),
        variance=np.where(rows, some.variance, others.variance),
        third=np.where(rows, some.third, others.third),
    )


def _fitted(found: Cumulants) -> _Fit:
    """The shifted log-normal of these cumulants. [J94]"""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        deviation = np.sqrt(np.asarray(found.variance, dtype=float))
        skewness = np.maximum(np.nan_to_num(found.third / deviation**3), LEAST_SKEWNESS)
        half = np.square(skewness) / 2
        root = np.cbrt(1 + half + skewness * np.sqrt(1 + half / 2))
        w = root + 1 / root - 1  # (w + 2) sqrt(w - 1) is the skewness
        # Near 1 the difference loses its digits: the skewness is then 3 sqrt(w - 1).
        grown = np.where(skewness < 0.01, np.square(skewness / 3), w - 1)
        scale = deviation / np.sqrt((1 + grown) * grown)
        shift = np.asarray(found.mean) - scale * np.sqrt(1 + grown)
        shift = np.where(np.isinf(scale), np.inf, shift)
    return _Fit(cumulants=found, shift=shift, scale=scale, width=np.sqrt(np.log1p(grown)))


_Z = np.linspace(-8.0, 8.0, 6401)
_BELOW = np.array([0.5 * math.erfc(-z / math.sqrt(2)) for z in _Z.tolist()])


def normal_below(z: Any) -> Column:
    """Standard normal distribution of a column, to seven digits."""
    return np.asarray(np.interp(z, _Z, _BELOW, left=0.0, right=1.0))
