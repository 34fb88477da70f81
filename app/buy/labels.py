"""Short names of ways to buy, policies and markets. Plain text."""

from __future__ import annotations

from math import isfinite

from app.buy.kept import Purchase
from app.buy.simulate import Market
from app.document import format as fmt
from app.document import vocabulary

POLICIES = {
    "spot_only": "spot only",
    "switch": "switch",
    "greedy": "greedy",
    "uniform_progress": "uniform progress",
    "safety_net": "safety net",
}
RULES = {
    "spot_only": "waits while there is no spot",
    "switch": "on demand while there is no spot",
    "greedy": "waits for spot until the deadline needs on demand to the end",
    "uniform_progress": "on demand only while progress is behind the line to the deadline",
    "safety_net": "on demand while there is no spot; to the end when the deadline needs it",
}
MARKETS = {
    "low": "lowest",
    "used": "in use",
    "high": "highest",
    "trace": "your trace",
    "exponential": "exponential",
}
# Causes of lost time, in the order they are drawn.
LOST = vocabulary.LOST | {"preemption": "interruptions of spot"}


def label(way: Purchase) -> str:
    """The name of a way: reserved 1 year, this run alone."""
    if way.name in POLICIES:
        return ("" if way.name == "spot_only" else "spot: ") + POLICIES[way.name]
    if way.name.endswith("_alone"):
        return f"{vocabulary.purchase(way.kind)}, this run alone"
    if way.name.startswith("reserved") and way.utilisation is not None:
        share = "all" if way.utilisation == 1 else fmt.percent(way.utilisation)
        best = " (best case)" if way.utilisation == 1 else ""
        return f"{vocabulary.purchase(way.kind)}, {share} used{best}"
    if way.window_days:
        return f"capacity block, {fmt.days(way.window_days * 24)}"
    if way.name == "owned":
        return vocabulary.PURCHASE_FAMILIES["owned"]
    return vocabulary.purchase(way.name)


def machine(way: Purchase) -> str:
    """The machine on which a way is priced."""
    return fmt.MISSING if way.plan is None else vocabulary.place(way.plan.offer)


def rate(per_day: float) -> str:
    """Preemptions per day, as text."""
    return f"{per_day:.3g}" if isfinite(per_day) else "any"


def chance(p: float | None) -> str:
    """A chance to two digits, since it rests on assumptions; a dash if there is none."""
    if p is None:
        return fmt.MISSING
    return "under 1%" if p < 0.01 else "over 99%" if p > 0.99 else f"{p:.0%}"


def market(one: Market) -> str:
    """A market with its rate: lowest, 0.005 a day."""
    return f"{MARKETS[one.name]}, {rate(one.job_per_day)} a day"
