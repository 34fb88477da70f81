"""Time and cost of one machine against its number of GPUs, and the value of waiting. The
compute-optimal curve is in app/scale/optimal.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.forecast.by_count import plans_by_count
from app.forecast.training import tokens_of
from app.scale.optimal import TRILLION, Optimal, optimal_of, rented
from app.scale.waiting import Waiting, waiting_of
from core.money import scaling
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan

LITTLE = 0.2  # share of the time; a doubling that saves less is not worth it


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One number of GPUs. Infinite hours: the run never ends; None dollars: no price, or it never
    ends."""

    plan: Plan
    efficiency: float  # tokens/s per GPU over the same at the fewest GPUs
    gpu_hours_per_trillion: float  # expected, of rented GPUs, per 1e12 tokens
    usd_per_trillion: float | None
    usd_per_day_saved: float | None = None  # against the next smaller count; None: not faster
    doubling_saves: float | None = None  # share of the expected time; None: double not compared
    doubling_usd_per_day: float | None = None  # dollars per day saved by doubling

    @property
    def expected_hours(self) -> float:
        """Mean hours of the run."""
        return self.plan.expected_hours

    @property
    def hours_p90(self) -> float:
        """Hours of the run, P90."""
        return as_float(self.plan.cost.hours.p90)

    @property
    def steady_usd(self) -> float | None:
        """Median dollars without failures, at the price as seen."""
        return None if self.plan.usd is None else _finite(self.plan.usd.p50)

    @property
    def expected_usd(self) -> float | None:
        """Mean dollars of the run."""
        return _finite(self.plan.expected_usd)

    @property
    def expected_usd_p90(self) -> float | None:
        """Dollars of the run, P90."""
        return _finite(self.plan.cost.total.p90)

    @property
    def paid_usd(self) -> float | None:
        """Mean dollars that are signed for."""
        return _finite(self.plan.paid_usd)

    @property
    def paid_usd_p90(self) -> float | None:
        """Dollars that are signed for, P90."""
        return _finite(self.plan.cost.paid.p90)


def _finite(usd: object) -> float | None:
    value = np.nan if usd is None else as_float(usd)
    return value if np.isfinite(value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Time and cost of one machine at many GPU counts, ascending."""

    plan: Plan
    points: tuple[Point, ...]
    no_layout: tuple[int, ...]  # counts without a legal layout that fits
    not_searched: tuple[int, ...]  # counts that the search did not reach within its budget
    waiting: Waiting
    optimal: Optimal | None  # None: it is no pre-training, or has no price
    why_no_optimal: str = ""

    def at(self, num_gpus: int) -> Point | None:
        """The point with this number of GPUs."""
        return next((p for p in self.points if p.plan.num_gpus == num_gpus), None)

    @property
    def _priced(self) -> list[tuple[float, Point]]:
        """Mean dollars that are signed for, and point, where they are known."""
        return [(p.paid_usd, p) for p in self.points if p.paid_usd is not None]

    @property
    def cheapest(self) -> Point | None:
        """The point with the least to pay on average."""
        return self.worth(0.0)

    @property
    def knee(self) -> Point | None:
        """The point with the fewest GPUs whose doubling saves little time."""
        return next(
            (p for p in self.points if p.doubling_saves is not None and p.doubling_saves < LITTLE),
            None,
        )

    @property
    def on_time(self) -> Point | None:
        """The point with the fewest GPUs that meets the deadline as surely as asked."""
        return next((p for p in self.points if p.plan.meets_deadline), None)

    def in_budget(self, budget_usd: float) -> Point | None:
        """The fastest point that keeps to the budget on average."""
        within = [p for usd, p in self._priced if usd <= budget_usd]
        return min(within, key=lambda p: p.expected_hours, default=None)

    def worth(self, usd_per_day: float) -> Point | None:
        """The point with the lowest mean dollars plus value of days: with more GPUs, each day saved
        costs more than it is worth."""
        whole = [(usd + usd_per_day * p.expected_hours / 24, p) for usd, p in self._priced]
        return min(whole, key=lambda pair: pair[0], default=(0.0, None))[1]


def scale_of(scenario: Scenario, plan: Plan) -> Scale:
    """The plan's machine at GPU counts around that of the plan."""
    searched = plans_by_count(plan)
    points = _points(scenario, searched.plans)
    scale = Scale(
        plan=plan,
        points=points,
        no_layout=searched.no_layout,
        not_searched=searched.not_searched,
        waiting=waiting_of(plan),
        optimal=None,
    )
    own = scale.at(plan.num_gpus)
    if own is None:  # a search that went over its budget can lack the plan's layout
        return scale
    optimal, why = optimal_of(scenario, plan, usd=own.expected_usd, hours=own.expected_hours)
    return replace(scale, optimal=optimal, why_no_optimal=why)


def _points(scenario: Scenario, plans: tuple[Plan, ...]) -> tuple[Point, ...]:
    efficiency = scaling.efficiency(np.array([p.tokens_per_s_per_gpu for p in plans]))
    trillions = tokens_of(scenario) / TRILLION
    points = []
    for share, plan in zip(efficiency.tolist(), plans, strict=True):
        usd = _finite(plan.expected_usd)
        points.append(
            Point(
                plan=plan,
                efficiency=share,
                gpu_hours_per_trillion=rented(plan) * as_float(plan.cost.paid_hours) / trillions,
                usd_per_trillion=None if usd is None else usd / trillions,
            )
        )
    return _compared(points)


def _compared(points: list[Point]) -> tuple[Point, ...]:
    """Each point compared with the next smaller count and with its double."""
    of_count = {p.plan.num_gpus: p for p in points}
    doubles = (of_count.get(2 * count) for count in of_count)
    return tuple(
        replace(
            p,
            usd_per_day_saved=_per_day(fewer, p),
            doubling_saves=_saved(p, double),
            doubling_usd_per_day=_per_day(p, double),
        )
        for fewer, p, double in zip([None, *points[:-1]], points, doubles, strict=True)
    )


def _saved(fewer: Point, double: Point | None) -> float | None:
    if double is None or not np.isfinite(fewer.expected_hours):
        return None
    if not np.isfinite(double.expected_hours):
        return 0.0
    saved = scaling.time_saved(hours=fewer.expected_hours, fewer_hours=double.expected_hours)
    return float(saved)


def _per_day(fewer: Point | None, more: Point | None) -> float | None:
    """Dollars per day that the larger count saves; None: not compared, not priced or not faster."""
    if not fewer or not more or fewer.paid_usd is None or more.paid_usd is None:
        return None
    per_day = scaling.usd_per_day_saved(
        usd=fewer.paid_usd,
        hours=fewer.expected_hours,
        more_usd=more.paid_usd,
        fewer_hours=more.expected_hours,
    )
    return None if np.isnan(per_day) else float(per_day)
