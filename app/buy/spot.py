"""A plan on spot machines under each policy, as ways to buy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.buy.kept import CURVE_ENDS, CURVE_POINTS, Curve, Purchase, lacking, never_ends
from app.buy.prices import Priced
from app.buy.simulate import (
    LEAST_USEFUL,
    Column,
    Market,
    Played,
    SpotRun,
    every_speed,
    job_on,
    with_startup,
)
from app.risk.risk import GIVEN_UP, Spread, other_usd
from core.failures import goodput
from core.failures import spot as failures_spot
from core.failures.goodput import Badput
from core.failures.policies import MOST_WORK, POLICIES, WITH_NET, Policy
from core.failures.spot import SpotJob
from core.money import purchase
from core.numeric import as_float
from core.units import HOUR_S

ON_SPOT: tuple[Policy, ...] = tuple(p for p in POLICIES if p != "on_demand")


def spot_purchases(
    run: SpotRun | None, priced: Priced, market: Market, policies: Sequence[Policy] = ON_SPOT
) -> tuple[Purchase, ...]:
    """One way to buy for every policy."""
    if run is None:
        return tuple(lacking(p, priced) for p in policies)
    return tuple(_purchase(run, market, p) for p in policies)


def _purchase(run: SpotRun, market: Market, policy: Policy) -> Purchase:
    if policy in WITH_NET and run.deadline_s is None:
        return lacking(policy, run.priced, "Plans for a deadline: give one.")
    job = job_on(run, market)
    back_s = np.inf if policy == "spot_only" else 0.0
    useful = as_float(failures_spot.shares(replace(job, fall_back_after_s=back_s)).useful)
    if policy == "spot_only" and market.trace is None and useful < LEAST_USEFUL:
        return lacking(policy, run.priced, _hopeless(run, job))
    failures = replace(run.job, interval_s=job.interval_s)
    slower = as_float(goodput.expected_s(failures) / goodput.failure_free_s(failures))
    if not slower < GIVEN_UP:
        attempt = goodput.attempt_probability(failures)
        return lacking(policy, run.priced, never_ends(as_float(attempt)))
    played = with_startup(run, every_speed(run, market, policy, job, slower, useful))
    return _of_played(run, market, policy, played, goodput.badput(failures), slower)


def _hopeless(run: SpotRun, job: SpotJob) -> str:
    """Why a job does not end on spot alone: checkpoints too far apart, or too little capacity."""
    cycle = 1 + as_float(job.preemptions_per_s) * as_float(job.outage_s)
    if as_float(failures_spot.kept_share(job)) > LEAST_USEFUL:
        return (
            f"Takes over {1 / LEAST_USEFUL:.0f} times its work: spot is up {1 / cycle:.2%} of "
            "the time."
        )
    rate = run.job.failures_per_s + job.preemptions_per_s
    attempt = replace(run.job, interval_s=job.interval_s, failures_per_s=rate)
    return never_ends(as_float(goodput.attempt_probability(attempt)))


def _of_played(
    run: SpotRun, market: Market, policy: Policy, played: Played, of_failures: Badput, slower: float
) -> Purchase:
    ended = float(np.mean(np.isfinite(played.total)))
    if ended < 1:
        return lacking(
            policy,
            run.priced,
            f"Does not end within {MOST_WORK:g} times its work from {1 - ended:.0%} of the starts "
            "that were played.",
        )
    middle = len(played.total) // 2
    usd = _usd(run, policy, played)
    late = over = idle = None
    if run.deadline_s is not None:
        # The fallback meets the deadline to the second: rounding must not count as late.
        limit = run.deadline_s / HOUR_S + run.plan.startup_hours
        late = purchase.late_share(played.total, limit + 1e-6)
    paid = played.spot[middle] + played.on_demand[middle]
    lost = _lost_hours(run, played, of_failures, slower)
    if usd is not None:
        if run.budget_usd is not None:
            over = purchase.late_share(usd, run.budget_usd)
        idle = lost["restart"] * (float(usd[middle].mean()) - other_usd(run.plan)) / paid.mean()
    return Purchase(
        name=policy, kind="spot", plan=run.plan, same_machine=run.priced.same_machine,
        market=market,
        hours=_spread(played.total), usd=None if usd is None else _spread(usd),
        why_not="" if usd is not None else "No price known of the machines that it falls back to.",
        misses_deadline=late, over_budget=over, idle_usd=idle, lost_hours=lost,
        finish=_curve(played.total), preemptions=float(played.preemptions[middle].mean()),
        spot_share=float(played.spot[middle].mean() / paid.mean()), paid_hours=float(paid.mean()),
    )  # fmt: skip


def _lost_hours(
    run: SpotRun, played: Played, of_failures: Badput, slower: float
) -> dict[str, float]:
    """Expected hours on top of the plan's own, by cause; machine failures lengthen the work."""
    middle = len(played.total) // 2
    stretch = (slower - 1) * as_float(run.job.work_s) / HOUR_S
    rework = as_float(of_failures.rework_s)
    restart = as_float(of_failures.restart_s) + as_float(of_failures.waiting_s)
    share = restart / (rework + restart) if rework + restart else 0.0
    return {
        "checkpoint": float(played.checkpoint[middle].mean()),
        "rework": float(played.rework[middle].mean()) + stretch * (1 - share),
        "restart": float(played.restart[middle].mean()) + stretch * share,
        "waiting": float(played.waiting[middle].mean()),
        "slow_nodes": as_float(run.job.work_s) / HOUR_S - run.plan.wall_clock_hours,
        "startup": run.plan.startup_hours,
    }


def _usd(run: SpotRun, policy: Policy, played: Played) -> Column | None:
    if run.spot_usd is None or (policy != "spot_only" and run.on_demand_usd is None):
        return None
    paid = played.spot * run.spot_usd + played.on_demand * (run.on_demand_usd or 0.0)
    hours = played.spot + played.on_demand
    paid = paid * np.maximum(run.plan.least_billed_hours / hours, 1.0)
    return np.asarray(paid + other_usd(run.plan))


def _spread(samples: Column) -> Spread:
    alone = samples[len(samples) // 2]
    p50, p90 = np.quantile(alone, [0.5, 0.9])
    p10_all, p50_all, p90_all = np.quantile(samples, [0.1, 0.5, 0.9])
    return Spread(
        expected=float(alone.mean()), p50=float(p50), p90=float(p90),
        p50_all=float(p50_all), p90_all=float(p90_all), p10_all=float(p10_all),
    )  # fmt: skip


def _curve(samples: Column) -> Curve:
    first, last = float(samples.min()), float(np.quantile(samples, 0.9)) * CURVE_ENDS
    at = np.linspace(first, last, CURVE_POINTS)
    done = purchase.chances(samples.ravel(), at)
    return tuple((float(h), float(p)) for h, p in zip(at, done, strict=True))
