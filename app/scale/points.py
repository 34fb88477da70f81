"""Time and cost of one machine against its number of GPUs, without and with failures, and the
value of waiting. The compute-optimal curve is in app/scale/optimal.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from app.forecast.by_count import plans_by_count
from app.forecast.failure_inputs import given_numbers
from app.forecast.failure_job import job_of, least_interval_s
from app.forecast.training import tokens_of
from app.risk.risk import GIVEN_UP, run_usd, speeds_of
from app.scale.optimal import TRILLION, Optimal, optimal_of, rented
from app.scale.waiting import Waiting, waiting_of
from core.failures import finish_time, goodput
from core.failures.goodput import Job
from core.money import scaling
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S

Floats = NDArray[np.float64]
JOB = tuple(f.name for f in fields(Job))
LITTLE = 0.2  # share of the time; a doubling that saves less is not worth it


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One number of GPUs; hours include the start-up. Infinite hours: it never ends; None dollars:
    no price, or never ends."""

    plan: Plan
    hours_expected: float  # with failures
    hours_p90: float  # with failures alone
    hours_p90_all: float  # with failures and the forecast's own error
    usd_steady: float | None
    usd_expected: float | None
    usd_p90: float | None
    usd_p90_all: float | None
    goodput: float
    efficiency: float  # tokens/s per GPU over the same at the fewest GPUs
    gpu_hours_per_trillion: float  # expected, of rented GPUs, per 1e12 tokens
    usd_per_trillion: float | None
    usd_per_day_saved: float | None = None  # against the next smaller count; None: not faster
    doubling_saves: float | None = None  # share of the expected time; None: double not compared
    doubling_usd_per_day: float | None = None  # dollars per day saved by doubling

    @property
    def expected_hours(self) -> float:
        """Mean hours all in; infinite: it never ends."""
        return self.plan.expected_hours

    @property
    def expected_usd(self) -> float | None:
        """Mean dollars all in; None: no price, or it never ends."""
        usd = self.plan.expected_usd
        return usd if usd is not None and np.isfinite(usd) else None


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
        """Expected dollars and point, where they are known."""
        return [(p.expected_usd, p) for p in self.points if p.expected_usd is not None]

    @property
    def cheapest(self) -> Point | None:
        """The point with the lowest expected dollars."""
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
        """The fastest point whose expected dollars are within the budget."""
        within = [p for usd, p in self._priced if usd <= budget_usd]
        return min(within, key=lambda p: p.expected_hours, default=None)

    def worth(self, usd_per_day: float) -> Point | None:
        """The point with the lowest expected dollars plus value of days: with more GPUs, each day
        saved costs more than it is worth."""
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
    job, slowdown = _jobs(scenario, plans)
    expected = np.asarray(goodput.expected_s(job)) / HOUR_S
    steady = np.array([p.wall_clock_hours for p in plans])
    ends = expected < GIVEN_UP * steady
    expected = np.where(ends, expected, np.inf)
    p90, p90_all = np.full(len(plans), np.inf), np.full(len(plans), np.inf)
    if ends.any():  # for runs that do not end, a quantile overflows
        ending = [p for p, e in zip(plans, ends, strict=True) if e]
        some = Job(**{n: np.asarray(getattr(job, n))[ends] for n in JOB})
        p90[ends] = np.asarray(finish_time.quantile_s(some, 0.9)) / HOUR_S
        p90_all[ends] = _with_the_forecasts_error(scenario, ending, some) / HOUR_S
    start = np.array([p.startup_hours for p in plans])
    expected, p90, p90_all = expected + start, p90 + start, p90_all + start
    share = np.asarray(goodput.goodput(job)) / slowdown
    efficiency = scaling.efficiency(np.array([p.tokens_per_s_per_gpu for p in plans]))
    trillions = tokens_of(scenario) / TRILLION
    found = []
    for n, plan in enumerate(plans):
        usd, all_in = _usd(plan, float(expected[n])), plan.expected_usd
        priced = all_in is not None and np.isfinite(all_in)
        found.append(
            Point(
                plan=plan,
                hours_expected=float(expected[n]),
                hours_p90=float(p90[n]),
                hours_p90_all=float(p90_all[n]),
                usd_steady=None if plan.usd is None else plan.usd.p50,
                usd_expected=usd,
                usd_p90=_usd(plan, float(p90[n])),
                usd_p90_all=_usd(plan, float(p90_all[n])),
                goodput=float(share[n]),
                efficiency=float(efficiency[n]),
                gpu_hours_per_trillion=rented(plan) * plan.billed(plan.expected_hours) / trillions,
                usd_per_trillion=all_in / trillions if all_in and priced else None,
            )
        )
    return _compared(found)


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
    if not fewer or not more or fewer.expected_usd is None or more.expected_usd is None:
        return None
    per_day = scaling.usd_per_day_saved(
        usd=fewer.expected_usd,
        hours=fewer.expected_hours,
        more_usd=more.expected_usd,
        fewer_hours=more.expected_hours,
    )
    return None if np.isnan(per_day) else float(per_day)


def _usd(plan: Plan, hours: float) -> float | None:
    """Dollars as in app/risk/risk.py; None where the run never ends, too."""
    return run_usd(plan, hours) if np.isfinite(hours) else None


def _jobs(scenario: Scenario, plans: tuple[Plan, ...]) -> tuple[Job, Floats]:
    """The plans as a column of jobs, each with its interval and its slowdown by slow nodes."""
    given = given_numbers(scenario)
    asked = [job_of(p, given) for p in plans]
    job = Job(**{n: np.array([as_float(getattr(a.job, n)) for a in asked]) for n in JOB})
    least = np.array([least_interval_s(a.job, p) for a, p in zip(asked, plans, strict=True)])
    if "interval_s" in given:
        job = replace(job, interval_s=np.maximum(given["interval_s"], least))
    else:
        job = goodput.at_best_interval(job, least_s=least)
    return job, np.array([a.slowdown for a in asked])


def _with_the_forecasts_error(scenario: Scenario, plans: Sequence[Plan], job: Job) -> Floats:
    """P90 in seconds, including the forecast's own error as given by its interval."""
    speeds = np.array([speeds_of(p) for p in plans])
    columns = Job(**{n: np.asarray(getattr(job, n))[:, None] for n in JOB})
    return scaling.quantiles_s(replace(columns, work_s=columns.work_s * speeds), 0.9)
