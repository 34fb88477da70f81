"""Computes a plan with failures from the plan and its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.forecast.failure_inputs import Input, given_numbers
from app.forecast.failure_job import Asked, failures_per_s, job_of, least_interval_s
from core.errors import ScenarioError
from core.failures import checkpoint as failures_checkpoint
from core.failures import finish_time, goodput, monte_carlo
from core.failures import reliability as failures_reliability
from core.failures.goodput import Job
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S
from hardware.reliability import published

GIVEN_UP = 1000.0  # a run expected to take this many times its steady time does not end
SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Expected, P50 and P90 of hours or dollars; `p10_all`, `p50_all` and `p90_all` also
    include the forecast's own error."""

    expected: float
    p50: float
    p90: float
    p50_all: float
    p90_all: float
    p10_all: float

    def each(self, of: Callable[[float], float]) -> Spread:
        """The spread with `of` applied to every figure; `of` must not decrease."""
        return Spread(**{name: of(value) for name, value in asdict(self).items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One way to choose the work between checkpoints."""

    name: str  # best, young, daly or given
    interval_s: float  # longer than the work: one checkpoint, at the end
    expected_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """Time and cost of one plan with failures."""

    plan: Plan
    job: Job
    unsure: Job  # a column of equally likely jobs, for the forecast's own error
    inputs: tuple[Input, ...]
    intervals: tuple[Interval, ...]  # the first is the one in use
    attempt_probability: float  # that an attempt reaches its next checkpoint
    finishes: bool  # in practice; if False, the remaining fields are empty
    failures: float = 0.0
    goodput: float = 0.0
    hours: Spread | None = None
    usd: Spread | None = None
    lost_hours: Mapping[str, float] = field(default_factory=dict)  # expected, by cause
    rates: tuple[tuple[float, float], ...] = ()  # failures per node-day, expected hours
    misses_deadline: float | None = None  # probability, as `Plan.total` has it
    bursty: tuple[float, float, float] | None = None  # simulated hours: expected, P50, P90

    def done_within(self, hours: float) -> float:
        """Chance that the run ends within these hours, with the forecast's own error."""
        left_s = (hours - self.plan.startup_hours) * HOUR_S
        return float(np.mean(finish_time.done_within(self.unsure, left_s)))


def speeds_of(plan: Plan, count: int = 25) -> NDArray[np.float64]:
    """Factors by which the work may take longer than forecast: a column, equally likely."""
    hours = plan.training_hours
    each = finish_time.equally_likely(p10=hours.p10, p50=hours.p50, p90=hours.p90, count=count)
    return each / hours.p50


def usd_per_hour(plan: Plan) -> float | None:
    """Dollars per hour for all machines of a plan; None: no price."""
    return None if plan.usd is None else plan.usd_per_hour


def other_usd(plan: Plan) -> float:
    """Costs of a plan other than machines: storage, traffic and credits of a price book."""
    rate = usd_per_hour(plan)
    return 0.0 if plan.usd is None or rate is None else plan.usd.p50 - rate * plan.billed_hours


def run_usd(plan: Plan, hours: float) -> float | None:
    """Dollars of a plan whose start-up and run take so many hours: machines are kept and paid
    through failures and waiting, other costs stay as in the plan. None: no price."""
    rate = usd_per_hour(plan)
    return None if plan.usd is None or rate is None else plan.billed(hours) * rate + other_usd(plan)


def risk_of(scenario: Scenario, plan: Plan) -> Risk:
    """The risk of one plan; `inputs` lists every number that the scenario does not give."""
    given = given_numbers(scenario)
    asked = job_of(plan, given)
    job, steady_s = asked.job, plan.wall_clock_hours * HOUR_S
    intervals = _intervals(job, plan, given)
    job = replace(job, interval_s=intervals[0].interval_s)
    found = Risk(
        plan=plan,
        job=job,
        unsure=replace(job, work_s=job.work_s * speeds_of(plan)),
        inputs=tuple(asked.inputs.values()),
        intervals=intervals,
        attempt_probability=as_float(goodput.attempt_probability(job)),
        finishes=as_float(goodput.expected_s(job)) < GIVEN_UP * steady_s,
    )
    if not found.finishes:
        return found
    return _with_answers(found, scenario, asked, given.get("weibull_shape"))


def _with_answers(risk: Risk, scenario: Scenario, asked: Asked, shape: float | None) -> Risk:
    job, unsure, plan = risk.job, risk.unsure, risk.plan
    spread = Spread(
        expected=_expected_hours(job),
        p50=as_float(finish_time.quantile_s(job, 0.5)) / HOUR_S,
        p90=as_float(finish_time.quantile_s(job, 0.9)) / HOUR_S,
        p50_all=finish_time.mixed_quantile_s(unsure, 0.5) / HOUR_S,
        p90_all=finish_time.mixed_quantile_s(unsure, 0.9) / HOUR_S,
        p10_all=finish_time.mixed_quantile_s(unsure, 0.1) / HOUR_S,
    ).each(lambda hours: plan.startup_hours + hours)
    chance = plan.total.chance_on_time
    late = None if chance is None else 1 - chance
    rates = sorted(f.value for f in published("failures_per_node_day"))
    of_job, least_s = asked.inputs["job_failures_per_day"].value, least_interval_s(job, plan)

    def hours_at(rate: float) -> float:
        failing = replace(job, failures_per_s=failures_per_s(plan, rate, of_job))
        return plan.startup_hours + _expected_hours(
            goodput.at_best_interval(failing, least_s=least_s)
        )

    return replace(
        risk,
        failures=as_float(goodput.expected_failures(job)),
        # Relative to the plan's own work: time that slow nodes add is lost as well.
        goodput=as_float(goodput.goodput(job)) / asked.slowdown,
        hours=spread,
        usd=_usd(plan, spread),
        lost_hours={**_lost_hours(job, asked.slowdown), "startup": plan.startup_hours},
        rates=tuple((rate, hours_at(rate)) for rate in (rates[0], rates[-1])),
        misses_deadline=late,
        bursty=None if shape is None else _simulated(job, shape, plan.startup_hours),
    )


def _lost_hours(job: Job, slowdown: float) -> dict[str, float]:
    """Hours by cause; with the plan's wall_clock_hours they add up to the expected hours."""
    lost = asdict(goodput.badput(job))
    hours = {name.removesuffix("_s"): as_float(s) / HOUR_S for name, s in lost.items()}
    return {**hours, "slow_nodes": as_float(job.work_s) / HOUR_S * (1 - 1 / slowdown)}


def _expected_hours(job: Job) -> float:
    return as_float(goodput.expected_s(job)) / HOUR_S


def _intervals(job: Job, plan: Plan, given: Mapping[str, float]) -> tuple[Interval, ...]:
    """The interval in use, and the others it is compared with."""
    least = least_interval_s(job, plan)
    best = goodput.at_best_interval(job, least_s=least).interval_s
    young: object = np.inf
    if job.failures_per_s:
        young = failures_reliability.young_interval_s(
            checkpoint_s=job.checkpoint_s, mean_time_to_failure_s=1 / job.failures_per_s
        )
    daly = failures_checkpoint.daly_interval_s(
        failures_per_s=job.failures_per_s, checkpoint_s=job.checkpoint_s
    )
    choices = {
        "best": as_float(best),
        "young": max(as_float(young), least),
        "daly": max(as_float(daly), least),
    }
    if "interval_s" in given:
        if given["interval_s"] < least:
            raise ScenarioError(
                f"--interval-seconds {given['interval_s']:g} is shorter than {least:.3g} s, which "
                "a step or the upload of the last checkpoint takes."
            )
        choices = {"given": given["interval_s"], **choices}
    return tuple(
        Interval(
            name=name,
            interval_s=interval_s,
            expected_hours=plan.startup_hours
            + _expected_hours(replace(job, interval_s=interval_s)),
        )
        for name, interval_s in choices.items()
    )


def _usd(plan: Plan, hours: Spread) -> Spread | None:
    """Dollars of each of these hours."""
    if run_usd(plan, 0.0) is None:
        return None
    return hours.each(lambda h: run_usd(plan, h) or 0.0)


def _simulated(job: Job, shape: float, startup_hours: float) -> tuple[float, float, float]:
    """Expected, P50 and P90 hours of simulated runs; infinite if some never finish."""
    numbers: dict[str, Any] = {name: as_float(x) for name, x in asdict(job).items()}
    played = monte_carlo.play(**numbers, weibull_shape=shape, seed=SEED)
    total = startup_hours + played.total_s / HOUR_S
    if not isfinite(total.max()):
        return np.inf, float(np.sort(total)[total.size // 2]), np.inf
    return float(total.mean()), float(np.quantile(total, 0.5)), float(np.quantile(total, 0.9))
