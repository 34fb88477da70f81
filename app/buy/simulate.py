"""Simulates a plan on spot capacity traces, from many starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from app.buy.prices import Priced
from app.forecast.costs import LEAST_OUTAGE_S, price_sigmas
from app.forecast.failure_inputs import given_numbers, known
from app.forecast.failure_job import least_interval_s
from app.forecast.price_book import price_day
from core.cost.run_cost import RunTerms
from core.failures import goodput, spot
from core.failures.availability import Trace, drawn
from core.failures.failures import gang_start_s
from core.failures.goodput import Job
from core.failures.policies import WITH_NET, Policy, play
from core.failures.time_factor import factor_at
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import DAY_S, HOUR_S

SEED = 1
STARTS = 240  # starts per simulation, evenly over its traces
SPEEDS = 75  # equally likely true speeds, given the forecast's error
PLAYED = 200  # preemptions simulated: of a run with more, only a part is simulated
PLAYED_ON_TRACE = 600  # limit on a given trace, whose parts are not independent
LEAST_USEFUL = 1 / 30  # share of the time that is assumed to be useful at least
LENGTHS = 200  # least length of a drawn trace, in runs or in cycles of up and down
Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """One assumption about how often spot capacity comes and goes."""

    name: str  # used, low, high, exponential or trace
    preemptions_per_day: float  # of one instance while it is up; of all instances for a trace
    job_per_day: float  # of the job, while all its instances are up
    outage_hours: float
    cv: float
    zones: int
    source: str
    trace: Trace | None = None

    @property
    def preemptions_per_s(self) -> float:
        """Rate at which the job is preempted while all its instances are up."""
        return self.job_per_day / DAY_S

    @property
    def outage_s(self) -> float:
        """Mean outage of a zone."""
        return max(self.outage_hours * HOUR_S, LEAST_OUTAGE_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRun:
    """A plan on spot: its work with machine failures, and the price of its fallback."""

    priced: Priced
    plan: Plan
    job: Job  # with machine failures only
    gang_start_s: float  # until the last machine has started
    least_s: float
    interval_s: float | None  # as given
    run: RunTerms  # columns of one row
    on_demand_ratio: float | None  # price of equal work on demand over spot; None: no price
    on_demand_sigma: float  # of the logarithm of the price on demand
    deadline_s: float | None  # from the start of training

    @property
    def restarted(self) -> Job:
        """The job whose restarts begin when the last machine has started."""
        return replace(self.job, reload_s=self.job.reload_s + self.gang_start_s)

    @property
    def speeds(self) -> Column:
        """Equally likely factors by which the work takes longer than forecast."""
        middles = (np.arange(SPEEDS) + 0.5) / SPEEDS
        normal = NormalDist()
        factors = [
            as_float(factor_at(normal.inv_cdf(p), self.run.sigma, self.run.skew))
            for p in middles.tolist()
        ]
        return np.array(factors) * as_float(self.run.correction)


def spot_run(scenario: Scenario, priced: Priced, on_demand: Plan | None) -> SpotRun | None:
    """The plan at its spot price, and the on-demand price that it falls back to."""
    plan = priced.plan
    if plan is None:
        return None
    given = given_numbers(scenario)
    basis = plan.basis
    job = Job(**{f.name: as_float(getattr(basis.job, f.name)) for f in fields(Job)})
    ratio, sigma = None, 0.0
    if on_demand is not None and on_demand.usd_per_hour is not None and plan.usd_per_hour:
        slower = on_demand.wall_clock_hours / plan.wall_clock_hours
        ratio = on_demand.usd_per_hour / plan.usd_per_hour * slower
        sigma = as_float(price_sigmas([on_demand.offer], price_day(scenario)))
    days = scenario.deadline_days
    return SpotRun(
        priced=priced,
        plan=plan,
        job=job,
        gang_start_s=as_float(
            gang_start_s(
                num_nodes=float(plan.num_nodes), mean_start_s=known("node_start_s", given).value
            )
        ),
        least_s=least_interval_s(job, plan),
        interval_s=given.get("interval_s"),
        run=basis.run,
        on_demand_ratio=ratio,
        on_demand_sigma=sigma,
        deadline_s=None if days is None else days * DAY_S - plan.startup_hours * HOUR_S,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Simulated hours of training, one row per speed, one column per start; work includes machine
    failures."""

    total: Column
    spot: Column
    on_demand: Column
    restart: Column
    preemptions: Column


SPENT = ("total", "spot", "on_demand", "restart")


def job_on(run: SpotRun, market: Market) -> spot.SpotJob:
    """The job on spot alone in closed form, with the best interval for this market. An upload
    counts as a reload does."""
    job, rate = run.restarted, market.preemptions_per_s
    total = replace(job, failures_per_s=job.failures_per_s + rate)
    interval_s = run.interval_s or goodput.at_best_interval(total, least_s=run.least_s).interval_s
    return spot.SpotJob(
        preemptions_per_s=rate,
        outage_s=market.outage_s,
        interval_s=min(as_float(interval_s), as_float(job.work_s)),
        checkpoint_s=job.checkpoint_s,
        restart_s=job.reload_s + job.upload_s,
    )


def traces_of(market: Market, length_s: float) -> tuple[Trace, ...]:
    """The capacity of every zone: the given trace, or drawn traces."""
    if market.trace is not None:
        return (market.trace,)
    if not market.job_per_day:  # capacity is always up
        return (Trace(starts_s=np.zeros(1), ends_s=np.array([length_s]), length_s=length_s),)
    return tuple(
        drawn(
            up_mean_s=DAY_S / market.job_per_day,
            down_mean_s=market.outage_s,
            up_cv=market.cv,
            length_s=length_s,
            seed=SEED + zone,
        )
        for zone in range(market.zones)
    )


def played(
    run: SpotRun, market: Market, policy: Policy, job: spot.SpotJob, slower: float
) -> Played:
    """All starts: at the forecast speed, or at every speed if the policy plans for a deadline.

    A policy with a deadline is simulated at a few of the speeds at which on-demand would meet the
    deadline, and each start is interpolated between them; at other speeds it runs on demand from
    the start. `slower`: factor on the work for machine failures.
    """
    waits_s = np.inf if policy == "spot_only" else 0.0
    useful = as_float(spot.shares(replace(job, fall_back_after_s=waits_s)).useful)
    work_s = as_float(run.job.work_s) * slower
    cycle_s = DAY_S / market.job_per_day + as_float(job.outage_s) if market.job_per_day else np.inf
    most = PLAYED if market.trace is None else PLAYED_ON_TRACE
    part = min(1.0, most * cycle_s / (work_s / max(useful, LEAST_USEFUL)))
    length_s = LENGTHS * (max(work_s * part, cycle_s) if market.job_per_day else work_s)
    traces = traces_of(market, length_s)
    if policy not in WITH_NET:
        return _played(run, policy, job, traces, work_s, part)
    speeds = run.speeds
    needed_s = work_s * speeds + job.checkpoint_s * np.ceil(work_s * speeds / job.interval_s)
    meets = needed_s <= (run.deadline_s or np.inf)
    late = _on_demand_alone(run, work_s * speeds)
    if not meets.any():
        return late
    slowest = int(meets.sum()) - 1
    middle = len(meets) // 2  # the forecast's own speed
    nodes = sorted({0, middle if middle <= slowest else (slowest + 1) // 2, slowest})
    simulated = [
        _played(run, policy, job, traces, work_s * speed, part) for speed in speeds[nodes].tolist()
    ]
    columns = {}
    for f in fields(Played):
        rows = np.concatenate([getattr(x, f.name) for x in simulated])
        between = _between(speeds, speeds[nodes], rows)
        columns[f.name] = np.where(meets[:, None], between, getattr(late, f.name))
    limit = (run.deadline_s or np.inf) / HOUR_S
    on_time = np.minimum(columns["total"], limit)
    return Played(**columns | {"total": np.where(meets[:, None], on_time, columns["total"])})


def _on_demand_alone(run: SpotRun, work_s: Column) -> Played:
    """A job that runs on demand from its start to meet the deadline, at each speed, with the
    interval that is best there; the work includes machine failures."""
    best = goodput.at_best_interval(run.job, least_s=run.least_s).interval_s
    interval_s = run.interval_s or as_float(best)
    needed_s = work_s + as_float(run.job.checkpoint_s) * np.ceil(work_s / interval_s - 1e-9)
    zero = np.zeros((work_s.size, STARTS))
    hours = zero + needed_s[:, None] / HOUR_S
    return Played(total=hours, spot=zero, on_demand=hours, restart=zero, preemptions=zero)


def _between(x: Column, nodes: Column, rows: Column) -> Column:
    """Rows at every x, interpolated linearly between the nodes."""
    if nodes.size == 1:
        return np.repeat(rows, x.size, axis=0)
    right = np.clip(np.searchsorted(nodes, x), 1, nodes.size - 1)
    share = np.clip((x - nodes[right - 1]) / (nodes[right] - nodes[right - 1]), 0, 1)[:, None]
    with np.errstate(invalid="ignore"):
        between = rows[right - 1] * (1 - share) + rows[right] * share
    return np.where(np.isnan(between), np.inf, np.maximum(between, 0.0))


def _played(
    run: SpotRun, policy: Policy, job: spot.SpotJob, traces: tuple[Trace, ...], work_s: float,
    part: float,
) -> Played:  # fmt: skip
    """One row of starts. If only a part of the run is simulated, means scale in proportion and
    deviations with the square root, as for a sum of independent parts."""
    length_s = max(t.length_s for t in traces)
    trials = play(
        policy,
        work_s=work_s * part,
        interval_s=as_float(job.interval_s),
        checkpoint_s=as_float(job.checkpoint_s),
        restart_s=as_float(job.restart_s),
        traces=traces,
        starts_s=(np.arange(STARTS) + 0.5) / STARTS * length_s,
        deadline_s=None if run.deadline_s is None else run.deadline_s * part,
    )

    def whole(values: Column) -> Column:
        if part == 1 or not np.isfinite(values).all():
            return np.asarray(values / part)[None, :]
        mean = values.mean()
        return np.maximum(mean / part + (values - mean) / np.sqrt(part), 0.0)[None, :]

    hours: Mapping[str, Column] = {
        name: whole(getattr(trials, f"{name}_s")) / HOUR_S for name in SPENT
    }
    return Played(**hours, preemptions=whole(trials.preemptions.astype(float)))
