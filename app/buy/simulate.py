"""Simulates a plan on spot capacity traces, from many starts and at every possible speed."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from app.buy.prices import Priced
from app.forecast.expected.total import LEAST_OUTAGE_S
from app.forecast.failure_inputs import given_numbers, known
from app.forecast.failure_job import job_of, least_interval_s
from app.risk.risk import speeds_of, usd_per_hour
from core.failures import goodput, spot
from core.failures.availability import Trace, drawn
from core.failures.failures import gang_start_s
from core.failures.goodput import Job
from core.failures.policies import WITH_NET, Policy, play
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import DAY_S, HOUR_S

SEED = 1
STARTS = 240  # starts per simulation, evenly over its traces
SPEEDS = 75  # equally likely true speeds, given the forecast's error
PLAYED = 200  # preemptions simulated: of a run with more, only a part is simulated
PLAYED_ON_TRACE = 600  # limit on a given trace, whose parts are not independent
LEAST_USEFUL = 1 / 30  # share of the time; below it the run never ends in practice
LENGTHS = 200  # least length of a drawn trace, in runs or in cycles of up and down
SPENT = ("total", "spot", "on_demand", "waiting", "rework", "restart", "checkpoint")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotRun:
    """Input of a simulation: the work of a plan with its failures, and the cost of an hour."""

    priced: Priced
    plan: Plan
    job: Job  # with machine failures only
    least_s: float
    interval_s: float | None  # as given
    speeds: Column
    spot_usd: float | None  # per hour
    on_demand_usd: float | None  # for the work that the spot machines do in an hour
    deadline_s: float | None  # from the start of training
    budget_usd: float | None


def spot_run(scenario: Scenario, priced: Priced, on_demand: Plan | None) -> SpotRun | None:
    """The plan at its spot price, and the on-demand price that it falls back to."""
    plan = priced.plan
    if plan is None:
        return None
    given = given_numbers(scenario)
    job = job_of(plan, given).job
    # A preemption stops every machine: the job resumes when the last one has started.
    gang_s = gang_start_s(
        num_nodes=float(plan.num_nodes), mean_start_s=known("node_start_s", given).value
    )
    job = replace(job, reload_s=np.add(job.reload_s, gang_s))
    back = None
    if on_demand is not None and (rate := usd_per_hour(on_demand)) is not None:
        back = rate * (on_demand.wall_clock_hours / plan.wall_clock_hours)
    days = scenario.deadline_days
    return SpotRun(
        priced=priced,
        plan=plan,
        job=job,
        least_s=least_interval_s(job, plan),
        interval_s=given.get("interval_s"),
        speeds=speeds_of(plan, SPEEDS),
        spot_usd=usd_per_hour(plan),
        on_demand_usd=back,
        deadline_s=None if days is None else days * DAY_S - plan.startup_hours * HOUR_S,
        budget_usd=scenario.budget_usd,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Simulated hours, one row per speed, one column per start; work includes machine failures."""

    total: Column
    spot: Column
    on_demand: Column
    waiting: Column
    rework: Column
    restart: Column
    checkpoint: Column
    preemptions: Column


def job_on(run: SpotRun, market: Market) -> spot.SpotJob:
    """The job on spot alone in closed form, with the best interval for this market. An upload
    counts as a reload does."""
    rate = market.job_per_day / DAY_S
    total = replace(run.job, failures_per_s=run.job.failures_per_s + rate)
    interval_s = run.interval_s or goodput.at_best_interval(total, least_s=run.least_s).interval_s
    return spot.SpotJob(
        preemptions_per_s=rate,
        outage_s=max(market.outage_hours * HOUR_S, LEAST_OUTAGE_S),
        interval_s=min(as_float(interval_s), as_float(run.job.work_s)),
        checkpoint_s=run.job.checkpoint_s,
        restart_s=run.job.reload_s + run.job.upload_s,
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
            down_mean_s=max(market.outage_hours * HOUR_S, LEAST_OUTAGE_S),
            up_cv=market.cv,
            length_s=length_s,
            seed=SEED + zone,
        )
        for zone in range(market.zones)
    )


def with_startup(run: SpotRun, played: Played) -> Played:
    """The simulated hours with the first start of the machines, which is paid as they are."""
    hours = run.plan.startup_hours
    on_spot = played.spot > 0
    return replace(
        played,
        total=played.total + hours,
        spot=played.spot + np.where(on_spot, hours, 0.0),
        on_demand=played.on_demand + np.where(on_spot, 0.0, hours),
    )


def every_speed(
    run: SpotRun, market: Market, policy: Policy, job: spot.SpotJob, slower: float, useful: float
) -> Played:
    """All starts at every speed. A policy without a deadline scales with its work. A policy that
    falls back on on-demand is simulated at a few of the speeds at which on-demand would meet the
    deadline, and each start is interpolated between them; at other speeds it runs on demand from
    the start."""
    work_s = as_float(run.job.work_s) * slower
    cycle_s = DAY_S / market.job_per_day + as_float(job.outage_s) if market.job_per_day else np.inf
    most = PLAYED if market.trace is None else PLAYED_ON_TRACE
    part = min(1.0, most * cycle_s / (work_s / max(useful, LEAST_USEFUL)))
    length_s = LENGTHS * (max(work_s * part, cycle_s) if market.job_per_day else work_s)
    traces = traces_of(market, length_s)

    def at(speed: float) -> Played:
        return _played(run, policy, job, traces, work_s * speed, part)

    if policy not in WITH_NET:
        one = at(1.0)
        return Played(
            **{f.name: run.speeds[:, None] * getattr(one, f.name)[None, :] for f in fields(Played)}
        )
    needed_s = work_s * run.speeds + job.checkpoint_s * np.ceil(
        work_s * run.speeds / job.interval_s
    )
    meets = needed_s <= (run.deadline_s or np.inf)
    late = _on_demand_alone(run, work_s * run.speeds)
    if not meets.any():
        return late
    slowest = int(meets.sum()) - 1
    middle = len(meets) // 2  # the forecast's own speed
    nodes = sorted({0, middle if middle <= slowest else (slowest + 1) // 2, slowest})
    found = [at(float(run.speeds[n])) for n in nodes]
    every = {}
    for f in fields(Played):
        rows = np.stack([getattr(x, f.name) for x in found])
        between = _between(run.speeds, run.speeds[nodes], rows)
        every[f.name] = np.where(meets[:, None], between, getattr(late, f.name))
    limit = (run.deadline_s or np.inf) / HOUR_S
    every["total"] = np.where(meets[:, None], np.minimum(every["total"], limit), every["total"])
    return Played(**every)


def _on_demand_alone(run: SpotRun, work_s: Column) -> Played:
    """A job that runs on demand from its start to meet the deadline, at each speed, with the
    interval that is best there; the work includes machine failures."""
    best = goodput.at_best_interval(run.job, least_s=run.least_s).interval_s
    interval_s = run.interval_s or as_float(best)
    needed_s = work_s + as_float(run.job.checkpoint_s) * np.ceil(work_s / interval_s - 1e-9)
    zero = np.zeros((work_s.size, STARTS))
    hours = zero + needed_s[:, None] / HOUR_S
    return Played(
        total=hours, spot=zero, on_demand=hours, waiting=zero, rework=zero, restart=zero,
        checkpoint=hours - work_s[:, None] / HOUR_S, preemptions=zero,
    )  # fmt: skip


def _between(x: Column, nodes: Column, rows: Column) -> Column:
    """Rows at every x, interpolated linearly between the nodes."""
    if nodes.size == 1:
        return np.repeat(rows, x.size, axis=0)
    right = np.clip(np.searchsorted(nodes, x), 1, nodes.size - 1)
    share = np.clip((x - nodes[right - 1]) / (nodes[right] - nodes[right - 1]), 0, 1)[:, None]
    with np.errstate(invalid="ignore"):
        found = rows[right - 1] * (1 - share) + rows[right] * share
    return np.where(np.isnan(found), np.inf, np.maximum(found, 0.0))


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
            return np.asarray(values / part)
        mean = values.mean()
        return np.maximum(mean / part + (values - mean) / np.sqrt(part), 0.0)

    hours = {name: whole(getattr(trials, f"{name}_s")) / HOUR_S for name in SPENT}
    return Played(**hours, preemptions=whole(trials.preemptions.astype(float)))
