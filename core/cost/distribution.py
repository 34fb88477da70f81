"""Sums and products of uncertain times and prices, through their first three cumulants.

A run is f times as long as forecast (median 1, a shifted log-normal: core/failures/time_factor.py),
so its training is a sum of f times as many segments. With m, v and t the cumulants at the forecast
speed (core/failures/goodput.py), cumulants by conditioning [B69] are

    k1 = m E[f],    k2 = v E[f] + m^2 Var[f],    k3 = t E[f] + 3 m v Var[f] + m^3 k3[f]

One shifted log-normal of these cumulants [J94] gives the quantiles and the chance of a limit, so
that they agree with the mean. It is exact where speed or price alone is uncertain.

[B69] Brillinger, "The calculation of cumulants via conditioning", Ann. Inst. Statist. Math. 21,
1969. [J94] Johnson, Kotz, Balakrishnan, "Continuous Univariate Distributions" 1, 1994, chapter 14.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.cost.uncertain import Uncertain
from core.failures.goodput import (
    Job,
    expected_s,
    failure_free_s,
    no_failure_probability,
    variance_s2,
)
from core.failures.time_factor import factor_at, factor_cumulants
from core.numeric import Z_90, Numeric

LEAST_SKEWNESS = 1e-3  # below it a shifted log-normal is a normal, and ill-conditioned
GIVEN_UP = 1000.0  # a run expected to take this many times its work does not end
Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cumulants:
    """Mean, variance and third central moment of a number, or of a column of them."""

    mean: Numeric
    variance: Numeric
    third: Numeric

    def times(self, factor: Numeric) -> Cumulants:
        """Cumulants of a certain multiple of the number."""
        return Cumulants(
            mean=np.multiply(self.mean, factor),
            variance=np.multiply(self.variance, np.square(factor)),
            third=np.multiply(self.third, np.power(factor, 3)),
        )

    def repeated(self, count: Numeric) -> Cumulants:
        """Cumulants of the sum of so many independent numbers of this kind."""
        return Cumulants(
            mean=np.multiply(self.mean, count),
            variance=np.multiply(self.variance, count),
            third=np.multiply(self.third, count),
        )

    def with_independent(self, other: Cumulants) -> Cumulants:
        """Cumulants of the sum with an independent number."""
        return Cumulants(
            mean=np.add(self.mean, other.mean),
            variance=np.add(self.variance, other.variance),
            third=np.add(self.third, other.third),
        )

    def with_comonotone(self, other: Cumulants) -> Cumulants:
        """Cumulants of the sum with a number that is large whenever this one is."""
        return Cumulants(
            mean=np.add(self.mean, other.mean),
            variance=np.square(np.sqrt(self.variance) + np.sqrt(other.variance)),
            third=np.power(np.cbrt(self.third) + np.cbrt(other.third), 3),
        )

    def take(self, rows: NDArray[np.intp]) -> Cumulants:
        """These rows of a column."""
        columns = (np.asarray(x, dtype=float) for x in (self.mean, self.variance, self.third))
        mean, variance, third = (x[rows] if x.ndim else x for x in columns)
        return Cumulants(mean=mean, variance=variance, third=third)


def sure(mean: Numeric) -> Cumulants:
    """Cumulants of a number that is certain."""
    return Cumulants(mean=mean, variance=0.0, third=0.0)


def cumulants_from_samples(samples: Column) -> Cumulants:
    """Cumulants of equally likely samples."""
    mean = float(samples.mean())
    apart = samples - mean
    return Cumulants(mean=mean, variance=float((apart**2).mean()), third=float((apart**3).mean()))


def training_cumulants(job: Job) -> Cumulants:
    """Cumulants of the training of a job that fails, in seconds: the third from the gamma that the
    excess over a run without failures is given some. Infinite: it never ends."""
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


def at_uncertain_speed(
    forecast: Cumulants, *, sigma: Numeric, skew: Numeric, correction: Numeric = 1.0
) -> Cumulants:
    """Cumulants where the work takes an uncertain factor longer, of this median. [B69]"""
    mean, variance, third = factor_cumulants(sigma, skew)
    mean, variance, third = correction * mean, correction**2 * variance, correction**3 * third
    m = np.asarray(forecast.mean)
    return Cumulants(
        mean=m * mean,
        variance=forecast.variance * mean + m**2 * variance,
        third=forecast.third * mean + 3 * m * forecast.variance * variance + m**3 * third,
    )


def at_uncertain_price(amount: Cumulants, *, sigma: Numeric, price: Numeric) -> Cumulants:
    """Cumulants of an amount times a price that has moved by a log-normal factor of median 1."""
    w = np.exp(np.square(sigma))
    grown = np.expm1(np.square(sigma))
    m, v = np.asarray(amount.mean), amount.variance
    rate = np.asarray(price, dtype=float)
    with np.errstate(invalid="ignore"):
        return Cumulants(
            mean=rate * m * np.sqrt(w),
            variance=rate**2 * (v * w**2 + m**2 * w * grown),
            third=rate**3
            * (
                amount.third * w**4.5
                + 3 * m * v * (w**4.5 - w**2.5)
                + m**3 * w**1.5 * grown**2 * (w + 2)
            ),
        )


def uncertain_speed(p50: Numeric, *, sigma: Numeric, skew: Numeric) -> Uncertain:
    """A speed whose median is forecast; its mean is that of runs: their work over their mean time.

    >>> speed = uncertain_speed(100.0, sigma=0.1, skew=0.0)
    >>> round(float(speed.p10), 2), round(float(speed.mean), 2)
    (87.97, 99.5)
    """
    slow, fast = (factor_at(z, sigma, skew) for z in (Z_90, -Z_90))
    mean = factor_cumulants(sigma, skew)[0]
    return Uncertain(mean=p50 / mean, p10=p50 / slow, p50=p50, p90=p50 / fast)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftedLogNormal:
    """shift + e^(log_scale + width z), z standard normal. [J94]"""

    cumulants: Cumulants
    shift: Column
    scale: Column
    width: Column

    def uncertain(self, more: Numeric = 0.0) -> Uncertain:
        """Mean and quantiles of this number and `more`."""
        at = np.add(self.shift, more)
        stretch = np.exp(Z_90 * self.width)
        mean = np.asarray(self.cumulants.mean)
        ends = ~np.isinf(mean)
        return Uncertain(
            mean=np.add(mean, more),
            p10=np.where(ends, at + self.scale / stretch, np.inf),
            p50=np.where(ends, at + self.scale, np.inf),
            p90=np.where(ends, at + self.scale * stretch, np.inf),
        )

    def below(self, limit: Numeric) -> Column:
        """Probability of at most `limit`."""
        over = np.subtract(limit, self.shift)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            z = np.where(over > 0, np.log(over / self.scale) / self.width, -np.inf)
        return np.where(np.isfinite(self.scale), normal_below(z), 0.0)

    def at_least(self, more: Numeric, least: Numeric) -> Cumulants:
        """Cumulants of max(this + more, least)."""
        k = self.cumulants
        shift = np.add(self.shift, more)
        plain = Cumulants(mean=np.add(k.mean, more), variance=k.variance, third=k.third)
        below = self.below(np.subtract(least, more))
        if not (binds := below > 1e-9).any():
            return plain
        floored = self._floored(shift, least, below)
        return Cumulants(
            mean=np.where(binds, floored.mean, plain.mean),
            variance=np.where(binds, floored.variance, plain.variance),
            third=np.where(binds, floored.third, plain.third),
        )

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


def fitted(number: Cumulants) -> ShiftedLogNormal:
    """The shifted log-normal of these cumulants. [J94]"""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        deviation = np.sqrt(np.asarray(number.variance, dtype=float))
        skewness = np.maximum(np.nan_to_num(number.third / deviation**3), LEAST_SKEWNESS)
        half = np.square(skewness) / 2
        root = np.cbrt(1 + half + skewness * np.sqrt(1 + half / 2))
        w = root + 1 / root - 1  # (w + 2) sqrt(w - 1) is the skewness
        # Near 1 the difference loses its digits: the skewness is then 3 sqrt(w - 1).
        grown = np.where(skewness < 0.01, np.square(skewness / 3), w - 1)
        scale = deviation / np.sqrt((1 + grown) * grown)
        shift = np.asarray(number.mean) - scale * np.sqrt(1 + grown)
        shift = np.where(np.isinf(scale), np.inf, shift)
    return ShiftedLogNormal(
        cumulants=number, shift=shift, scale=scale, width=np.sqrt(np.log1p(grown))
    )


_Z = np.linspace(-8.0, 8.0, 6401)
_BELOW = np.array([0.5 * math.erfc(-z / math.sqrt(2)) for z in _Z.tolist()])


def normal_below(z: Any) -> Column:
    """Standard normal distribution of a column, to seven digits."""
    return np.asarray(np.interp(z, _Z, _BELOW, left=0.0, right=1.0))
