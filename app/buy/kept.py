"""Ways to buy machines that are kept to the end: on demand, reserved, a block, owned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from app.buy.prices import Priced
from app.buy.simulate import Market
from core.cost.run_cost import OF_MACHINES, RunCost
from core.cost.uncertain import Uncertain
from core.failures import goodput
from core.money import purchase
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Plan
from core.units import HOUR_S

CURVE_POINTS = 48
CURVE_ENDS = 1.15  # end of the curve, as a multiple of the P90
LOST = ("checkpoint", "rework", "restart", "waiting", "preemption", "slow_nodes", "startup")
BUSY = ("training", "slow_nodes", "checkpoint", "rework")  # hours in which the machines train
NO_PRICE = "No price known: the time is that of its machines."
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
    cost: RunCost | None = None
    idle_usd: float | None = None  # mean, paid while nothing trains
    paid_hours: float | None = None  # mean, of each machine
    finish: Curve = ()  # hours, and the chance of finishing within them
    utilisation: float | None = None  # of a reservation; None also if only this run uses it
    outside_window: float | None = None  # probability that the run does not end inside a block
    preemptions: float | None = None  # mean, of the job
    spot_share: float | None = None  # of the paid hours

    @property
    def hours(self) -> Uncertain | None:
        """Hours of the run; None: no figures."""
        return None if self.cost is None else self.cost.hours

    @property
    def usd(self) -> Uncertain | None:
        """Dollars of the run, of a reservation for this run alone the whole terms; None: no
        price."""
        if self.cost is None or not self.cost.has_price:
            return None
        return self.cost.paid if self.name.endswith("_alone") else self.cost.total

    @property
    def paid(self) -> Uncertain | None:
        """Dollars that are signed for; None: no price."""
        return self.cost.paid if self.cost is not None and self.cost.has_price else None

    @property
    def misses_deadline(self) -> float | None:
        """Probability; None: no deadline. A run that a block ends does not end in time."""
        late = None if self.cost is None else _missed(self.cost.chance_on_time)
        return late if late is None else max(late, self.outside_window or 0.0)

    @property
    def over_budget(self) -> float | None:
        """Probability that what is paid exceeds the budget; None: no budget, or no price."""
        return None if self.cost is None else _missed(self.cost.chance_in_budget)

    @property
    def window_days(self) -> float | None:
        """Days of a capacity block; None: it is none."""
        hours = 0.0 if self.cost is None else as_float(self.cost.window_hours)
        return hours / 24.0 if hours else None

    @property
    def lost_hours(self) -> Mapping[str, float]:
        """Mean hours that are not training, by cause."""
        if self.cost is None:
            return {}
        return {cause: as_float(self.cost.hour_terms[cause]) for cause in LOST}


def _missed(chance: object) -> float | None:
    value = as_float(chance)
    return 1 - value if isfinite(value) else None


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


def kept_purchases(scenario: Scenario, priced: Priced) -> tuple[Purchase, ...]:
    """The ways to buy at one price: two for a reservation, else one."""
    kind, plan = priced.kind, priced.plan
    is_reserved = kind in purchase.TERM_HOURS
    names = (kind, f"{kind}_alone") if is_reserved else (kind,)
    if plan is None:
        return tuple(lacking(name, priced) for name in names)
    if not isfinite(plan.expected_hours):
        reason = never_ends(_attempt_probability(plan))
        return tuple(lacking(name, priced, reason) for name in names)
    way = Purchase(
        name=kind, kind=kind, plan=plan, same_machine=priced.same_machine, cost=plan.cost,
        idle_usd=_idle_usd(plan.cost), paid_hours=as_float(plan.cost.paid_hours),
        finish=curve_of(plan.cost), why_not="" if plan.cost.has_price else NO_PRICE,
    )  # fmt: skip
    if kind == "capacity_block":
        return (_in_window(way, plan.cost),)
    if not is_reserved:
        return (way,)
    used = scenario.reserved_utilisation
    alone = plan.cost if used is None else _unshared_cost(plan)
    return (
        replace(way, utilisation=1.0 if used is None else used),
        replace(
            way, name=f"{kind}_alone", cost=alone, idle_usd=_idle_usd(alone, is_alone=True),
            paid_hours=as_float(alone.num_terms) * purchase.TERM_HOURS[kind],
        ),
    )  # fmt: skip


def curve_of(cost: RunCost) -> Curve:
    """The chance of being finished against time."""
    hours = cost.hours
    first = max(2 * as_float(hours.p10) - as_float(hours.p50), 0.0)
    at = np.linspace(first, as_float(hours.p90) * CURVE_ENDS, CURVE_POINTS)
    return tuple(zip(at.tolist(), cost.done_within(at).tolist(), strict=True))


def _attempt_probability(plan: Plan) -> float:
    return as_float(goodput.attempt_probability(plan.basis.job))


def _idle_usd(cost: RunCost, *, is_alone: bool = False) -> float | None:
    """Mean dollars of machines that do not train: of whole terms, if a reservation is this run's
    alone."""
    if cost.terms is None or not cost.has_price:
        return None
    usd = {name: as_float(cost.terms[name].mean) for name in OF_MACHINES}
    whole = as_float(cost.committed_usd)
    if not is_alone:
        whole = sum(usd.values()) + as_float(cost.terms["commitment"].mean)
    per_hour = usd["compute"] / as_float(cost.hour_terms["training"])
    busy = sum(as_float(cost.hour_terms[cause]) for cause in BUSY)
    return max(whole - per_hour * busy, 0.0)


def _unshared_cost(plan: Plan) -> RunCost:
    """The cost of a plan whose reservation nobody else uses."""
    basis = plan.basis
    alone = replace(basis, run=replace(basis.run, utilisation=None))
    return alone.cost(with_terms=True).row(0)


def _in_window(way: Purchase, cost: RunCost) -> Purchase:
    """A capacity block, which ends a run that is not done."""
    usable_s = purchase.usable_block_s(window_days=as_float(cost.window_hours) / 24.0)
    inside = as_float(cost.done_within(usable_s / HOUR_S))
    finish = tuple((hours, min(chance, inside)) for hours, chance in way.finish)
    return replace(way, outside_window=1 - inside, finish=finish)
