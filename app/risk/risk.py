"""What failures do to a plan: its checkpoint intervals, other failure rates, bursts.

Time and cost are those of the plan (core/cost/run_cost.py). Times at another interval or rate are
the same closed form at the plan's mean speed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from app.forecast import preemption
from app.forecast.costs import preempted
from app.forecast.failure_inputs import Input, given_numbers
from app.forecast.failure_job import failures_per_s, job_of, least_interval_s
from core.cost.uncertain import Uncertain
from core.errors import ScenarioError
from core.failures import checkpoint as failures_checkpoint
from core.failures import goodput, monte_carlo
from core.failures import reliability as failures_reliability
from core.failures.goodput import Job
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S
from hardware.reliability import published

SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointInterval:
    """One way to choose the work between checkpoints."""

    name: str  # best, young, daly or given
    interval_s: float  # longer than the work: one checkpoint, at the end
    expected_hours: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """A plan with what its failures rest on, and the times at other intervals and rates."""

    plan: Plan
    job: Job  # at the forecast speed and the interval in use, without preemptions
    stopped_job: Job  # with preemptions
    inputs: tuple[Input, ...]
    intervals: tuple[CheckpointInterval, ...]  # the first is the one in use
    attempt_probability: float  # that an attempt reaches its next checkpoint
    rates: tuple[tuple[float, float], ...]  # failures per node-day, expected hours
    bursty: tuple[float, float, float] | None = None  # simulated hours: mean, P50, P90

    @property
    def finishes(self) -> bool:
        """Whether the run ends in practice."""
        return isfinite(self.plan.expected_hours)

    @property
    def hours(self) -> Uncertain | None:
        """Hours of the run; None: it never ends."""
        return self.plan.cost.hours if self.finishes else None

    @property
    def usd(self) -> Uncertain | None:
        """Dollars of the run; None: no price, or it never ends."""
        return self.plan.cost.total if self.finishes and self.plan.cost.has_price else None

    @property
    def goodput(self) -> float:
        """Share of the time with failures that is work at the forecast speed."""
        return as_float(self.plan.cost.goodput)

    @property
    def misses_deadline(self) -> float | None:
        """Chance to be late; None: no deadline, or the run never ends."""
        chance = self.plan.chance_on_time
        return None if chance is None or not self.finishes else 1 - chance


def risk_of(scenario: Scenario, plan: Plan) -> Risk:
    """The risk of one plan; `inputs` lists every number that the scenario does not give."""
    given = given_numbers(scenario)
    request = job_of(plan, given)

    def also_preempted(job: Job) -> Job:
        return preempted(
            scenario, job, num_nodes=float(plan.num_nodes), on_spot=plan.offer.purchase == "spot"
        )[0]

    least_s = least_interval_s(request.job, plan)
    stopped = also_preempted(request.job)
    intervals = _intervals(stopped, plan, given, least_s=least_s)
    job, stopped = (replace(x, interval_s=intervals[0].interval_s) for x in (request.job, stopped))
    job_failures_per_day = request.inputs["job_failures_per_day"].value

    def hours_at(rate: float) -> float:
        failing = replace(
            request.job, failures_per_s=failures_per_s(plan, rate, job_failures_per_day)
        )
        often = also_preempted(failing)
        return _expected_hours(plan, goodput.at_best_interval(often, least_s=least_s))

    rates = sorted(fact.value for fact in published("failures_per_node_day"))
    risk = Risk(
        plan=plan,
        job=job,
        stopped_job=stopped,
        inputs=(*request.inputs.values(), *_preemption_inputs(scenario, plan)),
        intervals=intervals,
        attempt_probability=as_float(goodput.attempt_probability(stopped)),
        rates=tuple((rate, hours_at(rate)) for rate in (rates[0], rates[-1])),
    )
    shape = given.get("weibull_shape")
    if shape is None or not risk.finishes:
        return risk
    return replace(risk, bursty=_simulated(job, shape, plan.startup_hours))


def _preemption_inputs(scenario: Scenario, plan: Plan) -> tuple[Input, ...]:
    if plan.offer.purchase != "spot":
        return ()
    return (
        preemption.rate(scenario),
        preemption.fact(scenario, "outage_hours"),
        preemption.common_fraction(),
    )


def _expected_hours(plan: Plan, job: Job) -> float:
    """Mean hours of the plan with other stops: they lengthen its mean training in proportion."""
    share = as_float(goodput.expected_s(job)) / (plan.wall_clock_hours * HOUR_S)
    return plan.startup_hours + as_float(plan.training_hours.mean) * share


def _intervals(
    job: Job, plan: Plan, given: Mapping[str, float], *, least_s: float
) -> tuple[CheckpointInterval, ...]:
    """The interval in use, and the others it is compared with."""
    best = goodput.at_best_interval(job, least_s=least_s).interval_s
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
        "young": max(as_float(young), least_s),
        "daly": max(as_float(daly), least_s),
    }
    if "interval_s" in given:
        if given["interval_s"] < least_s:
            raise ScenarioError(
                f"--interval-seconds {given['interval_s']:g} is shorter than {least_s:.3g} s, "
                "which a step or the upload of the last checkpoint takes."
            )
        choices = {"given": given["interval_s"], **choices}
    return tuple(
        CheckpointInterval(
            name=name,
            interval_s=interval_s,
            expected_hours=_expected_hours(plan, replace(job, interval_s=interval_s)),
        )
        for name, interval_s in choices.items()
    )


def _simulated(job: Job, shape: float, startup_hours: float) -> tuple[float, float, float]:
    """Mean, P50 and P90 hours of simulated runs; infinite if some never finish."""
    numbers: dict[str, Any] = {name: as_float(x) for name, x in asdict(job).items()}
    played = monte_carlo.play(**numbers, weibull_shape=shape, seed=SEED)
    total = startup_hours + played.total_s / HOUR_S
    if not isfinite(total.max()):
        return np.inf, float(np.sort(total)[total.size // 2]), np.inf
    return float(total.mean()), float(np.quantile(total, 0.5)), float(np.quantile(total, 0.9))
