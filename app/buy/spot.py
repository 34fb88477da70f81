"""A plan on spot machines under each policy, as ways to buy.

Spot only is in closed form, as the plan's own cost is; other policies, and any policy on a trace,
are simulated, and the cumulants of the samples are those of the training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from app.buy.kept import (
    CURVE_ENDS,
    CURVE_POINTS,
    Curve,
    Purchase,
    curve_of,
    lacking,
    never_ends,
)
from app.buy.prices import Priced
from app.buy.simulate import Column, Market, Played, SpotRun, job_on, played
from core.cost.distribution import Cumulants, cumulants_from_samples
from core.cost.run_cost import RunCost, RunTerms, run_cost
from core.cost.training import Training, training_of_job
from core.cost.uncertain import Uncertain
from core.failures import goodput
from core.failures.goodput import Job
from core.failures.policies import MOST_WORK, POLICIES, WITH_NET, Policy
from core.failures.spot import also_preempted
from core.failures.time_factor import factor_cumulants
from core.money import purchase
from core.numeric import as_float
from core.units import HOUR_S

ON_SPOT: tuple[Policy, ...] = tuple(p for p in POLICIES if p != "on_demand")
NO_FALLBACK_PRICE = "No price known of the machines that it falls back to."
PAID_IDLE = ("restart", "waiting", "startup")  # hours of RunCost.hour_terms without preemptions


def spot_purchases(
    run: SpotRun | None, priced: Priced, market: Market, policies: Sequence[Policy] = ON_SPOT
) -> tuple[Purchase, ...]:
    """One way to buy for every policy."""
    if run is None:
        return tuple(lacking(p, priced) for p in policies)
    return tuple(
        spot_only(run, market)
        if policy == "spot_only" and market.trace is None
        else simulated(run, market, policy)
        for policy in policies
    )


def spot_only(run: SpotRun, market: Market) -> Purchase:
    """Spot that waits until capacity is there again, in closed form: exponential uptimes."""
    job, paid = also_preempted(
        run.job,
        preemptions_per_s=market.preemptions_per_s,
        outage_s=market.outage_s,
        gang_start_s=run.gang_start_s,
        zones=market.zones,
    )
    job = _with_interval(run, job)
    if market.name == "used":
        cost = run.plan.cost
    else:
        training = training_of_job(
            work_s=_work_s(run),
            job=job,
            paid=replace(paid, interval_s=job.interval_s),
            failing=replace(run.job, interval_s=job.interval_s),
        )
        cost = run_cost(training, run.run, with_terms=True).row(0)
    if not isfinite(cost.hours.mean):
        return lacking("spot_only", run.priced, never_ends(_attempt(job)))
    count = market.preemptions_per_s * as_float(goodput.uptime_s(job)) * _mean_factor(run)
    restart_hours = count * as_float(job.reload_s) / HOUR_S
    return Purchase(
        name="spot_only", kind="spot", plan=run.plan, same_machine=run.priced.same_machine,
        market=market, cost=cost, idle_usd=_idle_usd(run.run, cost, restart_hours),
        paid_hours=as_float(cost.paid_hours), finish=curve_of(cost), preemptions=count,
        spot_share=1.0,
    )  # fmt: skip


def simulated(run: SpotRun, market: Market, policy: Policy) -> Purchase:
    """A policy that is simulated on the capacity of a market."""
    if policy in WITH_NET and run.deadline_s is None:
        return lacking(policy, run.priced, "Plans for a deadline: give one.")
    job = job_on(run, market)
    failing = replace(run.job, interval_s=job.interval_s)
    training = training_of_job(work_s=_work_s(run), job=failing, paid=failing, failing=failing)
    restarted = replace(failing, reload_s=run.restarted.reload_s)
    slower = _slower(restarted)
    if not isfinite(as_float(training.elapsed.mean)) or not isfinite(slower):
        return lacking(policy, run.priced, never_ends(_attempt(restarted)))
    samples = played(run, market, policy, job, slower)
    ended = float(np.mean(np.isfinite(samples.total)))
    if ended < 1:
        return lacking(
            policy,
            run.priced,
            f"Does not end within {MOST_WORK:g} times its work from {1 - ended:.0%} of the starts "
            "that were simulated.",
        )
    return _purchase(run, market, policy, samples, training)


def _purchase(
    run: SpotRun, market: Market, policy: Policy, samples: Played, failing: Training
) -> Purchase:
    has_net = policy in WITH_NET
    start = run.plan.startup_hours
    ratio = 1.0 if policy == "spot_only" else run.on_demand_ratio
    # The machines that start first are on demand where no spot is used at all.
    first = np.where(samples.spot > 0, 0.0, start)
    bill = _bill(run, samples.spot - first, samples.on_demand + first, ratio or 1.0)
    training = _training(
        failing,
        elapsed_s=samples.total * HOUR_S,
        paid_s=bill.hours * HOUR_S,
        longer=float(run.speeds.mean()) if has_net else None,
    )
    terms = replace(run.run, price_sigma=bill.price_sigma)
    if has_net:  # the samples are at every speed
        terms = replace(terms, sigma=0.0, skew=0.0, correction=1.0)
    if ratio is None:
        terms = replace(terms, usd_per_hour=np.full(1, np.nan))
    cost = run_cost(training, terms, with_terms=True).row(0)
    finish = curve_of(cost)
    if has_net:
        total = samples.total.ravel() + start
        cost, finish = _as_sampled(run, cost, total), _curve(total)
    longer = 1.0 if has_net else _mean_factor(run)
    on_spot, on_demand = float(samples.spot.mean()), float(samples.on_demand.mean())
    idle_usd = _idle_usd(terms, cost, float(samples.restart.mean()) * longer)
    if idle_usd is not None:
        idle_usd *= float(bill.hours.mean()) / (on_spot + on_demand)
    return Purchase(
        name=policy, kind="spot", plan=run.plan, same_machine=run.priced.same_machine,
        market=market, cost=cost,
        why_not="" if cost.has_price else NO_FALLBACK_PRICE,
        idle_usd=idle_usd,
        paid_hours=(on_spot + on_demand) * longer + start, finish=finish,
        preemptions=float(samples.preemptions.mean()) * longer,
        spot_share=on_spot / (on_spot + on_demand),
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bill:
    """Hours that cost as much at one uncertain price as those on spot and on demand together."""

    hours: Column
    price_sigma: float


def _bill(run: SpotRun, spot: Column, on_demand: Column, ratio: float) -> _Bill:
    """Both prices are uncertain on their own, so that the deviation of their sum is smaller. The
    hours have the mean cost of both."""
    of_spot, of_on_demand = as_float(run.run.price_sigma), run.on_demand_sigma
    usd, more = max(float(spot.mean()), 0.0), ratio * float(on_demand.mean())
    share = usd / (usd + more)
    sigma = float(np.hypot(share * of_spot, (1 - share) * of_on_demand))
    hours = spot * np.exp((of_spot**2 - sigma**2) / 2)
    hours = hours + ratio * on_demand * np.exp((of_on_demand**2 - sigma**2) / 2)
    return _Bill(hours=hours, price_sigma=sigma)


def _training(
    failing: Training, *, elapsed_s: Column, paid_s: Column, longer: float | None
) -> Training:
    """The training of simulated seconds. Samples have the mean of machine failures, and at one
    speed not their spread. `longer`: mean factor of the speeds that are in the samples; None: they
    are at the forecast speed."""
    elapsed, paid = (
        cumulants_from_samples(elapsed_s.ravel()),
        cumulants_from_samples(paid_s.ravel()),
    )
    if longer is None:
        spread = Cumulants(mean=0.0, variance=failing.failing.variance, third=failing.failing.third)
        elapsed, paid = elapsed.with_independent(spread), paid.with_independent(spread)
    factor = 1.0 if longer is None else longer
    parts = {
        cause: as_float(s) * factor for cause, s in failing.parts_s.items() if cause != "preemption"
    }
    return replace(
        failing,
        elapsed=elapsed,
        paid=paid,
        parts_s=parts | {"preemption": as_float(elapsed.mean) - sum(parts.values())},
    )


def _as_sampled(run: SpotRun, cost: RunCost, total_hours: Column) -> RunCost:
    """The cost with the distribution of simulated hours: a deadline that is planned for cuts it
    off."""
    p10, p50, p90 = np.quantile(total_hours, [0.1, 0.5, 0.9]).tolist()
    # The fallback meets the deadline to the second: rounding must not count as late.
    limit = (run.deadline_s or np.inf) / HOUR_S + run.plan.startup_hours + 1e-6
    return replace(
        cost,
        hours=Uncertain(mean=cost.hours.mean, p10=p10, p50=p50, p90=p90),
        chance_on_time=1 - purchase.late_share(total_hours, limit),
        failure_free_hours=run.plan.cost.failure_free_hours,
        failure_free=run.plan.cost.failure_free,
    )


def _curve(total_hours: Column) -> Curve:
    last = float(np.quantile(total_hours, 0.9)) * CURVE_ENDS
    at = np.linspace(float(total_hours.min()), last, CURVE_POINTS)
    return tuple(zip(at.tolist(), purchase.chances(total_hours, at).tolist(), strict=True))


def _with_interval(run: SpotRun, job: Job) -> Job:
    if run.interval_s is None:
        return goodput.at_best_interval(job, least_s=run.least_s)
    return replace(job, interval_s=max(run.interval_s, run.least_s))


def _slower(failing: Job) -> float:
    """Factor on the work that adds the mean time of machine failures."""
    checkpoints = goodput.failure_free_s(failing) - failing.work_s
    return as_float((goodput.expected_s(failing) - checkpoints) / failing.work_s)


def _attempt(job: Job) -> float:
    return as_float(goodput.attempt_probability(job))


def _work_s(run: SpotRun) -> float:
    return run.plan.wall_clock_hours * HOUR_S


def _mean_factor(run: SpotRun) -> float:
    """Mean of how much longer than forecast the work takes."""
    return as_float(run.run.correction * factor_cumulants(run.run.sigma, run.run.skew)[0])


def _idle_usd(terms: RunTerms, cost: RunCost, restart_hours: float) -> float | None:
    """Mean dollars of machines that do not train. `restart_hours`: after preemptions."""
    if not cost.has_price:
        return None
    per_hour = as_float(terms.usd_per_hour * np.exp(np.square(terms.price_sigma) / 2))
    hours = restart_hours + sum(as_float(cost.hour_terms[cause]) for cause in PAID_IDLE)
    return per_hour * hours
