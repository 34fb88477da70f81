"""The speed of a run: the forecast as prior, its steps as evidence.

The logarithm of tokens/s is normal before a run: its P10 and P90 give the width. n steps whose
logarithms scatter by s with a correlation r of neighbours weigh as n (1 - r) / (1 + r) independent
ones [1]. What is left of a run may differ from what was seen of it by `DRIFT`, however long that
was. Precisions add up [2]. Where more than `SURPRISE` widths lie between forecast and run, the
forecast is taken as so much wider: it hardly counts any more.

[1] Bayley and Hammersley, "The effective number of independent observations in an autocorrelated
time series", JRSS Supplement 8(2), 1946. [2] Gelman et al., Bayesian Data Analysis, 3rd ed., 2.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.numeric import Z_90

DRIFT = 0.02  # of the logarithm; chosen
NARROWEST = 1e-3  # width of a prior without one
SURPRISE = 3.0  # standard deviations; chosen


@dataclass(frozen=True, slots=True)
class Belief:
    """A log-normal speed."""

    median: float
    sigma: float  # of the logarithm

    def quantile(self, z: float) -> float:
        """The speed at z standard deviations."""
        return self.median * math.exp(z * self.sigma)


def prior(*, p10: float, p50: float, p90: float) -> Belief:
    """The forecast as a belief.

    >>> round(prior(p10=80.0, p50=100.0, p90=125.0).sigma, 3)
    0.174
    """
    return Belief(p50, max(math.log(p90 / p10) / (2 * Z_90), NARROWEST))


@dataclass(slots=True)
class Seen:
    """Logarithms of speeds, summed up as they come."""

    count: int = 0
    _mean: float = 0.0
    _squares: float = 0.0
    _products: float = 0.0  # of neighbours, from the first value
    _first: float = 0.0
    _before: float = 0.0

    def add(self, value: float) -> None:
        """Take one more value."""
        if self.count == 0:
            self._first = value
        else:
            self._products += (value - self._first) * (self._before - self._first)
        self._before = value
        self.count += 1
        step = value - self._mean
        self._mean += step / self.count
        self._squares += step * (value - self._mean)

    @property
    def mean(self) -> float:
        """Their mean."""
        return self._mean

    @property
    def deviation(self) -> float:
        """Their standard deviation; 0 of fewer than two."""
        return math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else 0.0

    @property
    def correlation(self) -> float:
        """Of neighbours, from 0 to 0.99."""
        if self.count < 3 or self._squares <= 0.0:
            return 0.0
        centre = self._mean - self._first
        ends = self._before - self._first  # the sums lack the last value, and the first, a zero
        total = self.count * centre
        pairs = self._products - centre * (total - ends) - centre * total
        covariance = pairs + (self.count - 1) * centre * centre
        return min(max(covariance / self._squares, 0.0), 0.99)

    @property
    def effective_count(self) -> float:
        """Independent values that weigh as much. [1]"""
        r = self.correlation
        return self.count * (1 - r) / (1 + r)


def updated(before: Belief, seen: Seen) -> Belief:
    """The belief after what was seen. [2]"""
    if seen.count < 2:
        return before
    own = seen.deviation**2 / max(seen.effective_count, 1.0) + DRIFT**2
    width = max(before.sigma, abs(seen.mean - math.log(before.median)) / SURPRISE)
    weight, known = 1 / own, 1 / width**2
    mean = (known * math.log(before.median) + weight * seen.mean) / (known + weight)
    return Belief(math.exp(mean), math.sqrt(1 / (known + weight)))
