"""Ways to buy machines that are kept to the end: on demand, reserved, a block, owned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from app.buy.prices import Priced
from app.buy.simulate import Market
from app.risk.risk import Risk, Spread, other_usd, usd_per_hour
from core.failures import finish_time, goodput
from core.money import purchase
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S

CURVE_POINTS = 48
CURVE_ENDS = 1.15  # end of the curve, as a multiple of the P90
Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """One way to buy the machines of a plan, with time and cost of the run."""

    name: str  # stable: on_demand, spot_only, switch, ..., reserved_1y, reserved_1y_alone, ...
    kind: str  # the purchase kind of its price; spot for a mix of spot and on-demand
    plan: Plan | None = None
    same_machine: bool = True  # whether it is the machine of the plan
    market: Market | None = None  # on which spot is simulated
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


def lacking(name: str, priced: Priced, why_not: str = "") -> Purchase:
    """A way without figures, with the reason."""
    return Purchase(
        name=name, kind=priced.kind, plan=priced.plan, same_machine=priced.same_machine,
        why_not=why_not or priced.why_not,
    )  # fmt: skip


def never_ends(chance: float) -> str:
    """A sentence that the run does not end in practice."""
    return (
        "Does not end: an attempt gets as far as its next checkpoint with a chance of "
        f"{'under 1e-99' if chance < 1e-99 else f'{chance:.2g}'}."
    )


def kept_purchases(scenario: Scenario, priced: Priced, risk: Risk | None) -> tuple[Purchase, ...]:
    """The ways to buy at one price: two for a reservation, else one. `risk` is of the priced plan;
    None: there is none."""
    kind = priced.kind
    names = (kind, f"{kind}_alone") if kind in purchase.TERM_HOURS else (kind,)
    if risk is None:
        return tuple(lacking(name, priced) for name in names)
    rate = usd_per_hour(risk.plan)
    if rate is None:
        return tuple(_purchase(scenario, priced, risk, name, None) for name in names)
    if kind in purchase.TERM_HOURS:
        return _reserved(scenario, priced, risk, rate)
    if kind == "capacity_block" and risk.hours is not None:
        return (_block(scenario, priced, risk, rate, risk.hours.p90_all),)
    return (_purchase(scenario, priced, risk, kind, lambda h: rate * risk.plan.billed(h)),)


def _purchase(
    scenario: Scenario, priced: Priced, risk: Risk, name: str,
    paid: Callable[[float], float] | None,
) -> Purchase:  # fmt: skip
    """The way with its figures; `paid` maps hours to dollars of machines; None: no price."""
    if risk.hours is None:
        return lacking(name, priced, never_ends(risk.attempt_probability))
    rate, others, lost = usd_per_hour(risk.plan), other_usd(risk.plan), risk.lost_hours
    usd = over = idle = None
    if paid is not None and rate is not None:
        usd = risk.hours.each(lambda hours: paid(hours) + others)
        busy = risk.hours.expected - lost["restart"] - lost["waiting"] - lost["startup"]
        idle = max(usd.expected - others - rate * busy, 0.0)
        if scenario.budget_usd is not None:
            most = 2 * CURVE_ENDS * risk.hours.p90_all
            over = 1 - risk.done_within(_hours_for(scenario.budget_usd - others, paid, most))
    return Purchase(
        name=name, kind=priced.kind, plan=risk.plan, same_machine=priced.same_machine,
        hours=risk.hours, usd=usd, misses_deadline=risk.misses_deadline, over_budget=over,
        idle_usd=idle, lost_hours=lost, finish=_curve(risk, risk.hours),
        paid_hours=risk.plan.billed(risk.hours.expected),
        why_not="" if usd else "No price known: the time is that of its machines.",
    )  # fmt: skip


def _hours_for(usd: float, paid: Callable[[float], float], most: float) -> float:
    """The hours that these dollars pay for, at most `most`, by bisection: `paid` does not
    decrease."""
    low, high = 0.0, most
    if paid(high) <= usd:
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if paid(middle) <= usd else (low, middle)
    return low


def _curve(risk: Risk, hours: Spread) -> Curve:
    """The chance of being finished against time, with the forecast's own error."""
    start = risk.plan.startup_hours
    first = start + float(np.min(goodput.failure_free_s(risk.unsure))) / HOUR_S
    at = np.linspace(first, hours.p90_all * CURVE_ENDS, CURVE_POINTS)
    column = replace(risk.unsure, work_s=np.asarray(risk.unsure.work_s)[:, None])
    left_s = (at[None, :] - start) * HOUR_S
    found = np.asarray(finish_time.done_within(column, left_s)).mean(axis=0)
    done = np.maximum.accumulate(found)  # exact to 0.001 only: neighbours may be out of order
    return tuple((float(h), float(p)) for h, p in zip(at, done, strict=True))


def _reserved(
    scenario: Scenario, priced: Priced, risk: Risk, rate: float
) -> tuple[Purchase, Purchase]:
    """Two reservations: one used at the scenario's utilisation (fully if it gives none), and one
    that only this run uses."""
    kind, used = priced.kind, scenario.reserved_utilisation
    utilisation = 1.0 if used is None else used

    def shared(hours: float) -> float:
        usd = rate * risk.plan.billed(hours)
        return as_float(purchase.at_utilisation_usd(usd=usd, utilisation=utilisation))

    def alone(hours: float) -> float:
        return as_float(
            purchase.whole_terms_usd(
                run_hours=hours, term_hours=purchase.TERM_HOURS[kind], usd_per_hour=rate
            )
        )

    one = _purchase(scenario, priced, risk, kind, shared)
    return (
        replace(one, utilisation=utilisation),
        _purchase(scenario, priced, risk, f"{kind}_alone", alone),
    )


def _block(
    scenario: Scenario, priced: Priced, risk: Risk, rate: float, p90_hours: float
) -> Purchase:
    """A capacity block with the given window, or the shortest window that holds the P90."""
    days = scenario.block_days or purchase.block_days(run_hours=p90_hours)
    if days is None:
        return lacking(
            priced.kind,
            priced,
            f"No block is long enough: the longest has {purchase.LONGEST_BLOCK_DAYS} days, and "
            f"the run takes {p90_hours / 24:.0f} (P90).",
        )
    paid = days * 24 * rate
    inside = risk.done_within(purchase.usable_block_s(window_days=days) / HOUR_S)
    way = _purchase(scenario, priced, risk, priced.kind, lambda _: paid)
    late = way.misses_deadline
    return replace(
        way,
        window_days=days,
        outside_window=1 - inside,
        misses_deadline=None if late is None else max(late, 1 - inside),
        finish=tuple((h, min(p, inside)) for h, p in way.finish),
        paid_hours=days * 24,
    )
