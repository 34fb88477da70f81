"""Time and cost of stages that follow one another on one set of machines.

Failures of different stages are independent, so at one speed their cumulants add up. An error of
the speed is one error of the model of these machines: it stretches every stage alike, with the
width of each stage weighed by its length, so that boundaries late in a programme are no surer than
early ones. The rest is core/cost/run_cost.py. Validity: that of its single runs; stages whose
widths differ are taken as fully correlated, which makes the interval wider than independent errors
would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.cost.distribution import at_uncertain_speed, fitted
from core.cost.run_cost import RunCost, RunTerms, run_cost
from core.cost.training import Training, joined_trainings
from core.cost.uncertain import Uncertain
from core.failures.time_factor import factor_cumulants
from core.numeric import Numeric
from core.units import HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One stage on one set of machines, or a column of them."""

    training: Training  # at the forecast speed
    sigma: Numeric  # of the logarithm of the speed
    skew: Numeric = 0.0  # of it, as in core/cost/run_cost.py; one for all stages
    before_hours: Numeric = 0.0  # conversion of the checkpoint, idle gap; certain, and paid

    def times(self, factor: Numeric) -> Leg:
        """The stage with more or fewer tokens."""
        return replace(self, training=self.training.repeated(factor))

    def take(self, rows: NDArray[np.intp]) -> Leg:
        """These rows of a column of stages."""
        return Leg(
            training=self.training.take(rows),
            sigma=np.asarray(self.sigma, dtype=float)[rows],
            skew=_rows(self.skew, rows),
            before_hours=_rows(self.before_hours, rows),
        )

    @property
    def expected_hours(self) -> Numeric:
        """Mean hours, with what comes before the training."""
        return np.add(self.before_hours, self.training.elapsed.mean * self._stretch / HOUR_S)

    @property
    def expected_paid_hours(self) -> Numeric:
        """Mean hours that are paid."""
        return np.add(self.before_hours, self.training.paid.mean * self._stretch / HOUR_S)

    @property
    def _stretch(self) -> Numeric:
        """Mean of how much longer the training takes."""
        return factor_cumulants(self.sigma, self.skew)[0]


def joined(legs: Sequence[Leg]) -> Leg:
    """Stages one after the other as one.

    >>> from core.cost.training import training_of_job
    >>> from core.failures.goodput import Job
    >>> job = Job(work_s=3600.0, interval_s=3600.0, checkpoint_s=0.0, failures_per_s=0.0)
    >>> training = training_of_job(work_s=3600.0, job=job, paid=job, failing=job)
    >>> both = joined([Leg(training=training, sigma=s) for s in (0.1, 0.3)])
    >>> float(both.training.elapsed.mean), round(float(both.sigma), 6)
    (7200.0, 0.2)
    """
    training = joined_trainings([leg.training for leg in legs])
    # A stage that never ends has no weight: its width does not matter then.
    with np.errstate(invalid="ignore"):
        weighed = sum(np.multiply(leg.training.elapsed.mean, leg.sigma) for leg in legs)
        sigma = weighed / training.elapsed.mean
    return Leg(
        training=training,
        sigma=np.where(np.isfinite(sigma), sigma, legs[0].sigma),
        skew=legs[0].skew,
        before_hours=np.asarray(sum(np.asarray(leg.before_hours) for leg in legs)),
    )


def whole(legs: Sequence[Leg], run: RunTerms) -> RunCost:
    """Cost of all stages, one after the other, on the terms of their machines: one start-up."""
    leg = joined(legs)
    startup = np.add(run.startup_hours, leg.before_hours)
    return run_cost(
        leg.training, replace(run, startup_hours=startup, sigma=leg.sigma, skew=leg.skew)
    )


def boundaries(legs: Sequence[Leg], *, startup_hours: Numeric) -> list[Uncertain]:
    """When each stage ends, in hours from the request of the machines."""
    ends = []
    for n in range(1, len(legs) + 1):
        leg = joined(legs[:n])
        before = np.add(startup_hours, leg.before_hours)
        seconds = at_uncertain_speed(leg.training.elapsed, sigma=leg.sigma, skew=leg.skew)
        ends.append(fitted(seconds.times(1 / HOUR_S)).uncertain(before))
    return ends


def _rows(values: Numeric, rows: NDArray[np.intp]) -> Numeric:
    """These rows of a column, or the number that all rows have."""
    column = np.asarray(values)
    return column[rows] if column.ndim else column
