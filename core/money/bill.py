"""The bill of a run, line by line: each a lower, an expected and an upper figure that add up.

Lower is the fast end of the forecast (its P10 of cost) and the P10 of time lost to failures; upper
the slow end and the P90. A total adds up lines of one column, so that its upper figure is what the
run costs if everything goes badly at once: for causes that have nothing to do with one another
that is above the P90 of their sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from core.numeric import Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One amount, of one line or of a column of runs."""

    lower: Numeric
    expected: Numeric
    upper: Numeric

    def times(self, factor: Numeric) -> Figure:
        """The same in another unit, or a share of it."""
        return Figure(
            lower=self.lower * factor, expected=self.expected * factor, upper=self.upper * factor
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hours:
    """Where the hours of a run go. The parts of a column sum to `total`."""

    training: Figure  # steady state
    checkpoints: Figure  # stopped to write them, and what slow machines add: without a failure
    failures: Figure  # noticing, restarting, reloading, work done again
    waiting: Figure  # for a machine

    @property
    def total(self) -> Figure:
        """Hours from start to end."""
        return total((self.training, self.checkpoints, self.failures, self.waiting))


def total(figures: Iterable[Figure]) -> Figure:
    """The sum of each column; of nothing it is nothing.

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
) -> Hours:
    """Hours of a run that may fail, by what they go to.

    `training.expected` is the time without failures or checkpoints, `failure_free` that with
    checkpoints and slow machines; `run` has P10, mean and P90 of the time with failures at that
    speed, and `failing` and `waiting` are the expected hours of both: what a column has beyond
    `failure_free` is split in their ratio.

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
    )


def credit(*, others: Figure, credit_usd: Numeric) -> Figure:
    """The line that a credit is: what it takes off each column, at most all of it.

    >>> found = credit(others=Figure(lower=5.0, expected=20.0, upper=30.0), credit_usd=10.0)
    >>> float(found.lower), float(found.upper)
    (-5.0, -10.0)
    """
    return Figure(
        lower=-np.minimum(credit_usd, others.lower),
        expected=-np.minimum(credit_usd, others.expected),
        upper=-np.minimum(credit_usd, others.upper),
    )
