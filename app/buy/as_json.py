"""Ways to buy a plan's machines as JSON: the keys of docs/risk.md. Add, never rename."""

from __future__ import annotations

from app.buy.kept import Purchase
from app.buy.labels import label
from app.buy.purchases import Purchases, Repeated
from app.buy.words import sentences
from app.document.as_json import Json, as_json, attributes, number
from app.plan.as_json import brief_json
from app.risk.as_json import spread_json
from app.scenario.link_query import document_head
from core.scenario import Scenario
from core.search.plan import Plan

SCHEMA_VERSION = 1


def purchases_json(scenario: Scenario, found: Purchases) -> dict[str, Json]:
    """The document of `runcast buy --json`; null: could not be computed."""
    return {
        **document_head(scenario, SCHEMA_VERSION),
        "sentences": list(sentences(scenario, found)),
        "plan": brief_json(found.plan),
        "ways": [_way(w) for w in found.ways],
        "break_even": found.break_even
        and attributes(
            found.break_even,
            "spot_usd",
            "on_demand_usd",
            job_preemptions_per_day="job_per_day",
            preemptions_per_day="instance_per_day",
        ),
        "markets": [_repeated(m) for m in found.markets],
        "exponential": found.exponential and _repeated(found.exponential),
        **attributes(found, "reservations", "trace", "inputs"),
    }


def _way(way: Purchase) -> dict[str, Json]:
    """One way to buy; `finish` is a curve: hours, and the chance of finishing within them."""
    names = "name kind same_machine why_not idle_usd paid_hours utilisation window_days preemptions"
    return {
        **attributes(
            way,
            *names.split(),
            "spot_share",
            "finish",
            misses_deadline_probability="misses_deadline",
            over_budget_probability="over_budget",
            outside_window_probability="outside_window",
        ),
        "label": label(way),
        "machine": _machine(way.plan),
        "hours": spread_json(way.hours),
        "usd": spread_json(way.usd),
        "paid": spread_json(way.paid),
        "training_hours": None if way.cost is None else number(way.cost.hour_terms["training"]),
        "lost_hours": as_json(way.lost_hours) or None,
    }


def _machine(plan: Plan | None) -> Json:
    if plan is None:
        return None
    return {
        **attributes(plan.offer, "provider", "instance_type", "region", "observed_at"),
        **attributes(plan, "usd_per_gpu_hour", "wall_clock_hours"),
    }


def _repeated(repeated: Repeated) -> dict[str, Json]:
    names = ("name", "preemptions_per_day", "outage_hours", "cv", "zones", "source")
    market = attributes(repeated.market, *names, job_preemptions_per_day="job_per_day")
    return {**market, "ways": [_way(w) for w in repeated.ways]}
