"""Time and cost of stages that follow one another on one set of machines.

Failures of different stages are independent, so at one speed their cumulants add up. An error of
the speed is one error of the model of these machines: it stretches every stage alike, with the
width of each stage weighed by its length, so that boundaries late in a programme are no surer than
early ones. The rest is core/money/total.py. Validity: that of its single runs; stages whose widths
differ are taken as fully correlated, which makes the interval wider than independent errors would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.failures.time_factor import factor_cumulants
from core.money.total import Cumulants, Outcome, Terms, Total, hours_of, of_cumulants
from core.numeric import Numeric
from core.units import HOUR_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """One stage on one set of machines, or a column of them."""

    trained: Cumulants  # seconds at the forecast speed, with every stop
    paid: Cumulants  # of it, what is paid
    sigma: Numeric  # of the logarithm of the speed
    skew: Numeric = 0.0  # of it, as in core/money/total.py; one for all stages
    before_hours: Numeric = 0.0  # conversion of the checkpoint, idle gap; certain, and paid

    def times(self, factor: Numeric) -> Leg:
        """The stage with more or fewer tokens."""
        trained = _times(self.trained, factor)
        return Leg(
            trained=trained,
            paid=trained if self.paid is self.trained else _times(self.paid, factor),
            sigma=self.sigma,
            skew=self.skew,
            before_hours=self.before_hours,
        )

    def take(self, rows: NDArray[np.intp]) -> Leg:
        """These rows of a column of stages."""

        def taken(of: Cumulants) -> Cumulants:
            return Cumulants(
                mean=_column(of.mean)[rows],
                variance=_column(of.variance)[rows],
                third=_column(of.third)[rows],
            )

        trained = taken(self.trained)
        return Leg(
            trained=trained,
            paid=trained if self.paid is self.trained else taken(self.paid),
            sigma=_column(self.sigma)[rows],
            skew=_rows(self.skew, rows),
            before_hours=_rows(self.before_hours, rows),
        )

    @property
    def expected_hours(self) -> Numeric:
        """Mean hours, with what comes before the training."""
        return np.add(self.before_hours, self.trained.mean * self._stretch / HOUR_S)

    @property
    def expected_paid_hours(self) -> Numeric:
        """Mean hours that are paid."""
        return np.add(self.before_hours, self.paid.mean * self._stretch / HOUR_S)

    @property
    def _stretch(self) -> Numeric:
        """Mean of how much longer the training takes."""
        return factor_cumulants(self.sigma, self.skew)[0]


def joined(legs: Sequence[Leg]) -> Leg:
    """Stages one after the other as one.

    >>> one = Cumulants(mean=3600.0, variance=0.0, third=0.0)
    >>> a, b = (Leg(trained=one, paid=one, sigma=s) for s in (0.1, 0.3))
    >>> both = joined([a, b])
    >>> float(both.trained.mean), round(float(both.sigma), 6)
    (7200.0, 0.2)
    """
    trained = _sum([leg.trained for leg in legs])
    # A stage that never ends has no weight: its width does not matter then.
    with np.errstate(invalid="ignore"):
        weighed = sum(np.multiply(leg.trained.mean, leg.sigma) for leg in legs) / trained.mean
    return Leg(
        trained=trained,
        paid=trained
        if all(leg.paid is leg.trained for leg in legs)
        else _sum([leg.paid for leg in legs]),
        sigma=np.where(np.isfinite(weighed), weighed, legs[0].sigma),
        skew=legs[0].skew,
        before_hours=np.asarray(sum(np.asarray(leg.before_hours) for leg in legs)),
    )


def whole(
    legs: Sequence[Leg],
    *,
    startup_hours: Numeric,
    least_billed_hours: Numeric,
    usd_per_hour: Numeric,
    other_usd: Numeric,
    price_sigma: Numeric,
    deadline_hours: float | None = None,
) -> Total:
    """Hours and dollars of all stages: one start-up, then one stage after the other."""
    leg = joined(legs)
    terms = Terms(
        startup_hours=np.add(startup_hours, leg.before_hours),
        least_billed_hours=least_billed_hours,
        usd_per_hour=usd_per_hour,
        other_usd=other_usd,
        sigma=leg.sigma,
        skew=leg.skew,
        price_sigma=price_sigma,
    )
    return of_cumulants(leg.trained, leg.paid, terms, deadline_hours=deadline_hours)


def boundaries(legs: Sequence[Leg], *, startup_hours: Numeric) -> list[Outcome]:
    """When each stage ends, in hours from the request of the machines."""
    found = []
    for n in range(1, len(legs) + 1):
        leg = joined(legs[:n])
        before = np.add(startup_hours, leg.before_hours)
        found.append(hours_of(leg.trained, sigma=leg.sigma, skew=leg.skew, before_hours=before))
    return found


def _rows(values: Numeric, rows: NDArray[np.intp]) -> Numeric:
    """These rows of a column, or the number that all rows have."""
    found = np.asarray(values)
    return found[rows] if found.ndim else found


def _column(values: Numeric) -> NDArray[np.float64]:
    return np.asarray(values, dtype=float)


def _sum(parts: Sequence[Cumulants]) -> Cumulants:
    """Cumulants of a sum of independent quantities."""
    return Cumulants(
        mean=np.asarray(sum(np.asarray(p.mean) for p in parts)),
        variance=np.asarray(sum(np.asarray(p.variance) for p in parts)),
        third=np.asarray(sum(np.asarray(p.third) for p in parts)),
    )


def _times(found: Cumulants, factor: Numeric) -> Cumulants:
    """Cumulants of as many times the segments."""
    return Cumulants(
        mean=np.multiply(found.mean, factor),
        variance=np.multiply(found.variance, factor),
        third=np.multiply(found.third, factor),
    )
