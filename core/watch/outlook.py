"""The speed of a run, its end, its cost and its chance on time, from what was seen so far.

The logarithm of tokens/s is normal before a run: P10 and P90 of the forecast give the width. n
steps whose logarithms scatter by s with a correlation r of neighbours weigh as n (1 - r) / (1 + r)
independent ones [1]. What is left of a run may differ from what was seen of it by `DRIFT`, however
long that was. Precisions add up [2]. Where more than `SURPRISE` widths lie between forecast and
run, the forecast is taken as so much wider: it hardly counts any more.

What is left takes its tokens over the believed speed, and for each second of training the seconds
that are lost: the forecast's share as if it had been seen for a tenth of the run, then that of the
run. The error of the latter falls with the number of losses; both errors are taken as independent,
and what is left as log-normal.

[1] Bayley and Hammersley, "The effective number of independent observations in an autocorrelated
time series", JRSS Supplement 8(2), 1946. [2] Gelman et al., Bayesian Data Analysis, 3rd ed., 2.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.cost.uncertain import Uncertain
from core.numeric import Z_90
from core.units import HOUR_S
from core.watch.records import Planned

DRIFT = 0.02  # of the logarithm; chosen
NARROWEST = 1e-3  # width of a prior without one
SURPRISE = 3.0  # standard deviations; chosen
PRIOR_SHARE = 0.1  # of the run, that the forecast of losses weighs; chosen


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
class SpeedSums:
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


def updated(before: Belief, seen: SpeedSums) -> Belief:
    """The belief after what was seen. [2]"""
    if seen.count < 2:
        return before
    own = seen.deviation**2 / max(seen.effective_count, 1.0) + DRIFT**2
    width = max(before.sigma, abs(seen.mean - math.log(before.median)) / SURPRISE)
    weight, known = 1 / own, 1 / width**2
    mean = (known * math.log(before.median) + weight * seen.mean) / (known + weight)
    return Belief(math.exp(mean), math.sqrt(1 / (known + weight)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How a run goes on. Seconds are from its begin."""

    speed: Uncertain  # tokens/s while it trains
    lost_share: float  # seconds lost for each second of training that is left
    end_s: Uncertain
    usd: Uncertain | None  # None: no price
    chance_on_time: float | None  # None: no deadline


def lost_share(planned: Planned, *, trained_s: float, lost_s: float) -> float:
    """Seconds lost for each second of training, as forecast and as seen.

    >>> p = Planned(p10=9.0, p50=10.0, p90=11.0, tokens=1e4, step_tokens=1.0, lost_share=0.1)
    >>> lost_share(p, trained_s=0.0, lost_s=0.0), round(lost_share(p, trained_s=900, lost_s=0), 3)
    (0.1, 0.01)
    """
    weight = PRIOR_SHARE * planned.training_s
    return (planned.lost_share * weight + lost_s) / (weight + trained_s)


def outlook(
    planned: Planned,
    speed: Belief,
    *,
    tokens: float,
    elapsed_s: float,
    trained_s: float,
    lost_s: float,
    num_losses: int,
) -> Outlook:
    """The outlook after `tokens` and `elapsed_s` seconds."""
    left = max(planned.tokens - tokens, 0.0)
    share = lost_share(planned, trained_s=trained_s, lost_s=lost_s)
    left_s = left / speed.median * (1 + share)
    sigma = math.hypot(speed.sigma, share / (1 + share) / math.sqrt(num_losses + 1))
    end = _spread(elapsed_s, left_s, sigma)
    rate = planned.usd_per_hour
    on_time = None
    if planned.deadline_s is not None:
        on_time = _chance(planned.deadline_s - elapsed_s, left_s, sigma)
    return Outlook(
        speed=Uncertain(
            mean=speed.median * math.exp(speed.sigma**2 / 2),
            p10=speed.quantile(-Z_90),
            p50=speed.median,
            p90=speed.quantile(Z_90),
        ),
        lost_share=share,
        end_s=end,
        usd=None if rate is None else end.times(rate / HOUR_S),
        chance_on_time=on_time,
    )


def _spread(before_s: float, left_s: float, sigma: float) -> Uncertain:
    width = math.exp(Z_90 * sigma)
    return Uncertain(
        mean=before_s + left_s * math.exp(sigma**2 / 2), p10=before_s + left_s / width,
        p50=before_s + left_s, p90=before_s + left_s * width,
    )  # fmt: skip


def _chance(available_s: float, left_s: float, sigma: float) -> float:
    """The chance that what is left fits into the seconds that are available."""
    if left_s <= 0:
        return 1.0 if available_s >= 0 else 0.0
    if available_s <= 0:
        return 0.0
    z = math.log(available_s / left_s) / max(sigma, 1e-9)
    return 0.5 * math.erfc(-z / math.sqrt(2))
