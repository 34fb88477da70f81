"""Bill of a run, line by line, each with a lower, an expected and an upper figure.

Lower is the fast end of the forecast (its P10 of cost) and the P10 of time lost to failures; upper
the slow end and the P90. A total adds up the lines of one column, so its upper figure is the cost
if everything goes badly at once: for independent causes that is above the P90 of their sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.numeric import Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One amount: of one line of the bill, or of a column of runs."""

    lower: Numeric
    expected: Numeric
    upper: Numeric

    def times(self, factor: Numeric) -> Figure:
        """The amount in another unit, or a share of it."""
        return Figure(
            lower=self.lower * factor, expected=self.expected * factor, upper=self.upper * factor
        )


ZERO = Figure(lower=0.0, expected=0.0, upper=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """The hours of a run, by what they are spent on. The parts of a column add up to `total`."""

    training: Figure  # steady state
    checkpoints: Figure  # writing checkpoints, and slow machines: without any failure
    failures: Figure  # noticing, restarting, reloading, work done again
    waiting: Figure  # for a machine
    startup: Figure = ZERO  # until training begins

    @property
    def total(self) -> Figure:
        """Hours from start to end."""
        return total((self.training, self.checkpoints, self.failures, self.waiting, self.startup))


def total(figures: Iterable[Figure]) -> Figure:
    """The sum of each column; 0 without any figure.

    >>> total([Figure(lower=1.0, expected=2.0, upper=4.0)] * 2)
    Figure(lower=2.0, expected=4.0, upper=8.0)
    """
    lower: Numeric = 0.0
    expected: Numeric = 0.0
    upper: Numeric = 0.0
    for f in figures:
        lower, expected, upper = lower + f.lower, expected + f.expected, upper + f.upper
    return Figure(lower=lower, expected=expected, upper=upper)


def hours_of(
    *,
    training: Figure,
    failure_free: Numeric,
    run: Figure,
    failing: Numeric,
    waiting: Numeric,
    startup: Numeric = 0.0,
) -> Hours:
    """Hours of a run that may fail, by what they are spent on.

    `training.expected` is the time without failures or checkpoints, `failure_free` includes
    checkpoints and slow machines; `run` has P10, mean and P90 of the time with failures at that
    speed; none of them includes `startup`. `failing` and `waiting` are expected hours: the hours of
    a column beyond `failure_free`
    are split in their ratio.

    >>> found = hours_of(training=Figure(lower=9.0, expected=10.0, upper=12.0), failure_free=11.0,
    ...     run=Figure(lower=11.0, expected=15.0, upper=19.0), failing=3.0, waiting=1.0)
    >>> float(found.waiting.upper), float(found.failures.upper), float(found.total.expected)
    (2.0, 6.0, 15.0)
    """
    lost = np.add(failing, waiting)
    share = np.divide(waiting, lost, out=np.zeros_like(lost, dtype=float), where=lost > 0)
    beyond = Figure(
        lower=np.maximum(run.lower - failure_free, 0.0),
        expected=np.maximum(run.expected - failure_free, 0.0),
        upper=np.maximum(run.upper - failure_free, 0.0),
    )
    written = np.maximum(np.subtract(failure_free, training.expected), 0.0)
    return Hours(
        training=training,
        checkpoints=Figure(lower=written, expected=written, upper=written),
        failures=beyond.times(1 - share),
        waiting=beyond.times(share),
        startup=Figure(lower=startup, expected=startup, upper=startup),
    )


def startup_paid(*, hours: Hours, least_hours: Numeric) -> Figure:
    """Paid hours before training: the start-up, and what the least that is billed (minimum or term)
    adds to a shorter run.

    >>> one = Figure(lower=1.0, expected=1.0, upper=1.0)
    >>> found = Hours(training=one, checkpoints=ZERO, failures=ZERO, waiting=ZERO, startup=one)
    >>> float(startup_paid(hours=found, least_hours=24.0).expected)
    23.0
    """
    whole, start = hours.total, hours.startup
    return Figure(
        lower=start.lower + np.maximum(least_hours - whole.lower, 0.0),
        expected=start.expected + np.maximum(least_hours - whole.expected, 0.0),
        upper=start.upper + np.maximum(least_hours - whole.upper, 0.0),
    )


def credit(*, others: Figure, credit_usd: Numeric) -> Figure:
    """The line of a credit: what it takes off each column, at most everything.

    >>> found = credit(others=Figure(lower=5.0, expected=20.0, upper=30.0), credit_usd=10.0)
    >>> float(found.lower), float(found.upper)
    (-5.0, -10.0)
    """
    return Figure(
        lower=-np.minimum(credit_usd, others.lower),
        expected=-np.minimum(credit_usd, others.expected),
        upper=-np.minimum(credit_usd, others.upper),
    )
