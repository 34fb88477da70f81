"""Ways to buy machines that are kept to the end: on demand, reserved, a block, owned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from app.buy.prices import Priced
from app.forecast import interval
from app.risk.risk import Risk, Spread, risk_of
from core.failures import finish_time as finish
from core.failures import goodput
from core.failures.goodput import Job
from core.money import purchase
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S

CURVE_POINTS = 48
CURVE_ENDS = 1.15  # end of the curve, as a multiple of the P90
LOST = ("checkpoint", "rework", "restart", "waiting", "slow_nodes")
Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to buy the machines of a plan, with time and cost of the run."""

    name: str  # stable: on_demand, spot_only, switch, ..., reserved_1y, reserved_1y_alone, ...
    kind: str  # the purchase kind of its price; spot for a mix of spot and on-demand
    plan: Plan | None = None
    same_machine: bool = True  # whether it is the machine of the plan
    why_not: str = ""  # the reason in a sentence, if figures are missing
    hours: Spread | None = None
    usd: Spread | None = None
    misses_deadline: float | None = None  # probability
    over_budget: float | None = None  # probability
    idle_usd: float | None = None  # expected, paid while nothing trains
    lost_hours: Mapping[str, float] = field(default_factory=dict)  # expected
    finish: Curve = ()  # hours, and the chance of finishing within them
    utilisation: float | None = None  # of a reservation; None also if only this run uses it
    window_days: float | None = None  # of a capacity block
    outside_window: float | None = None  # probability that the run does not end inside
    preemptions: float | None = None  # expected, of the job
    spot_share: float | None = None  # of the paid hours
    paid_hours: float | None = None  # expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A plan whose machines are kept through failures, with what its bill needs."""

    priced: Priced
    risk: Risk
    unsure: Job  # a column of equally likely jobs, for the forecast's own error

    @property
    def plan(self) -> Plan:
        return self.risk.plan

    def done_within(self, hours: float) -> float:
        """Chance that the run ends within these hours, with the forecast's own error."""
        return float(np.mean(finish.done_within(self.unsure, hours * HOUR_S)))


def kept_of(scenario: Scenario, priced: Priced) -> Kept | None:
    """The run on the machines of one price; None without a plan at that price."""
    if priced.plan is None:
        return None
    risk = risk_of(scenario.model_copy(update={"weibull_shape": None}), priced.plan)
    return Kept(
        priced=priced,
        risk=risk,
        unsure=replace(risk.job, work_s=risk.job.work_s * speeds_of(scenario, priced.plan)),
    )


def speeds_of(scenario: Scenario, plan: Plan, count: int = 25) -> NDArray[np.float64]:
    """Factors by which the work may take longer than forecast: a column, equally likely."""
    hours = interval.wall_clock_hours(scenario, plan)
    return finish.equally_likely(p50=hours.p50, p90=hours.p90, count=count) / hours.p50


def usd_per_hour(plan: Plan) -> float | None:
    """Dollars per hour for all machines of a plan; None: no price."""
    if plan.usd_per_gpu_hour is None:
        return None
    return plan.usd_per_gpu_hour * plan.gpu_hours / plan.wall_clock_hours


def beside_usd(plan: Plan) -> float:
    """Costs of a plan other than machines: storage, traffic and credits of a price book."""
    rate = usd_per_hour(plan)
    return 0.0 if plan.usd is None or rate is None else plan.usd.p50 - rate * plan.wall_clock_hours


def each(spread: Spread, of: Callable[[float], float]) -> Spread:
    """The spread with `of` applied to every figure; `of` must not decrease."""
    return Spread(
        expected=of(spread.expected), p50=of(spread.p50), p90=of(spread.p90),
        p50_all=of(spread.p50_all), p90_all=of(spread.p90_all), p10_all=of(spread.p10_all),
    )  # fmt: skip


def lacking(name: str, priced: Priced, why_not: str = "") -> Way:
    """A way without figures, with the reason."""
    return Way(
        name=name, kind=priced.kind, plan=priced.plan, same_machine=priced.same_machine,
        why_not=why_not or priced.why_not,
    )  # fmt: skip


def never_ends(chance: float) -> str:
    """A sentence that the run does not end in practice."""
    return (
        "Does not end: an attempt gets as far as its next checkpoint with a chance of "
        f"{'under 1e-99' if chance < 1e-99 else f'{chance:.2g}'}."
    )


def _way(scenario: Scenario, kept: Kept, name: str, paid: Callable[[float], float] | None) -> Way:
    """The way with its figures; `paid` maps hours to dollars of machines; None: no price."""
    risk, priced = kept.risk, kept.priced
    lost = risk.badput
    if risk.hours is None or lost is None:
        return lacking(name, priced, never_ends(risk.attempt_probability))
    rate, beside = usd_per_hour(kept.plan), beside_usd(kept.plan)
    usd = over = idle = None
    parts = {
        "checkpoint": as_float(lost.checkpoint_s) / HOUR_S,
        "rework": as_float(lost.rework_s) / HOUR_S,
        "restart": as_float(lost.restart_s) / HOUR_S,
        "waiting": as_float(lost.waiting_s) / HOUR_S,
        "slow_nodes": risk.straggler_hours,
    }
    curve = curve_of(kept)
    if paid is not None and rate is not None:
        usd = each(risk.hours, lambda h: paid(h) + beside)
        busy = risk.hours.expected - parts["restart"] - parts["waiting"]
        idle = max(usd.expected - beside - rate * busy, 0.0)
        if scenario.budget_usd is not None:
            over = 1 - kept.done_within(_hours_for(scenario.budget_usd - beside, paid, curve))
    late = None
    if scenario.deadline_days is not None:
        late = 1 - kept.done_within(scenario.deadline_days * 24)
    return Way(
        name=name, kind=priced.kind, plan=kept.plan, same_machine=priced.same_machine,
        hours=risk.hours, usd=usd, misses_deadline=late, over_budget=over, idle_usd=idle,
        lost_hours=parts, finish=curve, paid_hours=risk.hours.expected,
        why_not="" if usd else "No price known: the time is that of its machines.",
    )  # fmt: skip


def _hours_for(usd: float, paid: Callable[[float], float], curve: Curve) -> float:
    """The most hours that these dollars pay for, by bisection: `paid` does not decrease."""
    low, high = 0.0, curve[-1][0] * 2
    if paid(high) <= usd:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if paid(middle) <= usd else (low, middle)
    return low


def curve_of(kept: Kept) -> Curve:
    """The chance of being finished against time, with the forecast's own error."""
    hours = kept.risk.hours
    if hours is None:
        return ()
    first = float(np.min(goodput.failure_free_s(kept.unsure))) / HOUR_S
    at = np.linspace(first, hours.p90_all * CURVE_ENDS, CURVE_POINTS)
    column = replace(kept.unsure, work_s=np.asarray(kept.unsure.work_s)[:, None])
    found = np.asarray(finish.done_within(column, at[None, :] * HOUR_S)).mean(axis=0)
    done = np.maximum.accumulate(found)  # exact to 0.001 only: neighbours may be out of order
    return tuple((float(h), float(p)) for h, p in zip(at, done, strict=True))


def on_demand_way(scenario: Scenario, kept: Kept, name: str = "on_demand") -> Way:
    """A way paid by the hour, also during failures: on demand or owned."""
    rate = usd_per_hour(kept.plan)
    return _way(scenario, kept, name, None if rate is None else lambda h: rate * h)


def reserved_ways(scenario: Scenario, kept: Kept) -> tuple[Way, Way]:
    """Two reservations: one used at the scenario's utilisation (fully if it gives none), and one
    that only this run uses."""
    kind, rate = kept.priced.kind, usd_per_hour(kept.plan)
    used = scenario.reserved_utilisation
    if rate is None:
        return lacking(kind, kept.priced), lacking(f"{kind}_alone", kept.priced)

    def shared(hours: float) -> float:
        return as_float(
            purchase.at_utilisation_usd(usd=rate * hours, utilisation=1.0 if used is None else used)
        )

    def alone(hours: float) -> float:
        return as_float(
            purchase.whole_terms_usd(
                run_hours=hours, term_hours=purchase.TERM_HOURS[kind], usd_per_hour=rate
            )
        )

    return (
        replace(_way(scenario, kept, kind, shared), utilisation=1.0 if used is None else used),
        _way(scenario, kept, f"{kind}_alone", alone),
    )


def block_way(scenario: Scenario, kept: Kept) -> Way:
    """A capacity block with the given window, or the shortest window that holds the P90."""
    rate, hours = usd_per_hour(kept.plan), kept.risk.hours
    if rate is None or hours is None:
        return on_demand_way(scenario, kept, "capacity_block")
    days = scenario.block_days or purchase.block_days(run_hours=hours.p90_all)
    if days is None:
        return lacking(
            "capacity_block",
            kept.priced,
            f"No block is long enough: the longest has {purchase.LONGEST_BLOCK_DAYS} days, and "
            f"the run takes {hours.p90_all / 24:.0f} (P90).",
        )
    paid = days * 24 * rate
    usable_hours = purchase.usable_block_s(window_days=days) / HOUR_S
    inside = kept.done_within(usable_hours)
    way = _way(scenario, kept, "capacity_block", lambda _: paid)
    late = way.misses_deadline
    return replace(
        way,
        window_days=days,
        outside_window=1 - inside,
        misses_deadline=None if late is None else max(late, 1 - inside),
        finish=tuple((h, min(p, inside)) for h, p in way.finish),
        paid_hours=days * 24,
    )
