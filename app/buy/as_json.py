"""Ways to buy a plan's machines as JSON: the keys of docs/risk.md. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict

from app.buy.kept import Purchase
from app.buy.labels import label
from app.buy.purchases import Purchases, Repeated
from app.buy.simulate import Market
from app.buy.words import sentences
from app.document.as_json import Json, number
from app.plan.as_json import brief_json
from app.risk.as_json import spread_json
from app.scenario.link_query import link_query
from core.scenario import Scenario
from core.search.plan import Plan
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def purchases_json(scenario: Scenario, found: Purchases) -> dict[str, Json]:
    """The document of `runcast buy --json`; null: could not be computed."""
    plan, even, trace = found.plan, found.break_even, found.trace
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(scenario, snapshot(scenario.prices).id),
        "sentences": list(sentences(scenario, found)),
        "plan": brief_json(plan),
        "ways": [_way(w) for w in found.ways],
        "break_even": None
        if even is None
        else {
            "job_preemptions_per_day": number(even.job_per_day),
            "preemptions_per_day": number(even.instance_per_day),
            "spot_usd": even.spot_usd,
            "on_demand_usd": even.on_demand_usd,
        },
        "reservations": [
            {
                "kind": r.kind,
                "break_even_utilisation": r.break_even_utilisation,
                "term_usd": r.term_usd,
            }
            for r in found.reservations
        ],
        "markets": [_repeated(m) for m in found.markets],
        "exponential": None if found.exponential is None else _repeated(found.exponential),
        "trace": None if trace is None else {k: number(v) for k, v in asdict(trace).items()},
        "inputs": [asdict(i) for i in found.inputs],
    }


def _way(way: Purchase) -> dict[str, Json]:
    """One way to buy; `finish` is a curve: hours, and the chance of finishing within them."""
    return {
        "name": way.name,
        "kind": way.kind,
        "label": label(way),
        "machine": _machine(way.plan),
        "same_machine": way.same_machine,
        "why_not": way.why_not,
        "hours": spread_json(way.hours),
        "usd": spread_json(way.usd),
        "paid": spread_json(way.paid),
        "misses_deadline_probability": way.misses_deadline,
        "over_budget_probability": way.over_budget,
        "idle_usd": way.idle_usd,
        "paid_hours": way.paid_hours,
        "training_hours": None if way.cost is None else number(way.cost.hour_terms["training"]),
        "lost_hours": dict(way.lost_hours) or None,
        "utilisation": way.utilisation,
        "window_days": way.window_days,
        "outside_window_probability": way.outside_window,
        "preemptions": way.preemptions,
        "spot_share": way.spot_share,
        "finish": [list(point) for point in way.finish],
    }


def _machine(plan: Plan | None) -> Json:
    if plan is None:
        return None
    offer = plan.offer
    return {
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "region": offer.region,
        "usd_per_gpu_hour": plan.usd_per_gpu_hour,
        "observed_at": offer.observed_at,
        "wall_clock_hours": plan.wall_clock_hours,
    }


def _repeated(one: Repeated) -> dict[str, Json]:
    return {**_market(one.market), "ways": [_way(w) for w in one.ways]}


def _market(market: Market) -> dict[str, Json]:
    return {
        "name": market.name,
        "preemptions_per_day": market.preemptions_per_day,
        "job_preemptions_per_day": market.job_per_day,
        "outage_hours": market.outage_hours,
        "cv": market.cv,
        "zones": market.zones,
        "source": market.source,
    }
