"""The price of a plan's machines by purchase kind, from one search over all kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from app.document import vocabulary
from app.forecast.answer import answer
from core.machine import offer
from core.scenario import Scenario
from core.search.plan import Plan

KINDS: tuple[str, ...] = get_args(offer.Purchase)
ALL = 100_000  # plans: every offer of one accelerator


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """The plan at the price of one purchase kind, or why there is none."""

    kind: str
    plan: Plan | None
    same_machine: bool = True  # whether it is the machine of the plan
    why_not: str = ""


def priced(scenario: Scenario, plan: Plan) -> tuple[Priced, ...]:
    """One price per kind, in the order of kinds: the plan itself, else the cheapest price of its
    own machine, else of any machine, of prices in doubt only if there is no other. A kind without
    offers is listed with the reason."""
    any_kind = {"gpu": (plan.offer.accelerator,), "num_gpus": (plan.num_gpus,), "purchase": KINDS}
    found = answer(scenario.model_copy(update={**any_kind, "plan": ""}), top=ALL).plans
    return tuple(_cheapest(scenario, kind, plan, found) for kind in KINDS)


def _cheapest(scenario: Scenario, kind: str, plan: Plan, found: tuple[Plan, ...]) -> Priced:
    if plan.offer.purchase == kind:
        return Priced(kind=kind, plan=plan)
    sold = [p for p in found if p.offer.purchase == kind and p.usd is not None]
    if not sold:
        return Priced(kind=kind, plan=None, why_not=_not_sold(scenario, kind, plan))
    best = min(
        sold,
        key=lambda p: (not _is_same(p, plan), bool(p.against), p.usd.p50 if p.usd else 0.0),
    )
    return Priced(kind=kind, plan=best, same_machine=_is_same(best, plan))


def _is_same(one: Plan, other: Plan) -> bool:
    a, b = one.offer, other.offer
    return (a.provider, a.instance_type) == (b.provider, b.instance_type)


def _not_sold(scenario: Scenario, kind: str, plan: Plan) -> str:
    gpu = plan.offer.accelerator
    if kind == "owned":
        return (
            f"No price known: a price book with an owned cluster of at least {plan.num_gpus} x "
            f"{gpu} gives one (docs/price-book.md)."
        )
    seller = f" at {' or '.join(scenario.cloud)}" if scenario.cloud else ""
    bought = vocabulary.purchase(kind)
    return f"No price known: {bought} of {gpu}{seller} is not in this price snapshot."
