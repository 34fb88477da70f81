"""When and how big as JSON: the keys that docs/scale.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite

from app.document.as_json import Json, number
from app.scale.optimal import Best, Optimal
from app.scale.points import Point, Scale
from app.scale.waiting import Waiting
from app.scale.words import optimal_sentences, scale_sentences, waiting_sentences
from app.scenario.link_query import link_query
from core.scenario import Scenario
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def scale_json(
    scenario: Scenario, found: Scale, usd_per_day: float | None = None
) -> dict[str, Json]:
    """The document of `runcast scale --json`; null: not known, or never ends."""
    plan, deadline, budget = found.plan, scenario.deadline_days, scenario.budget_usd
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(scenario, snapshot(scenario.prices).id),
        "sentences": [
            *scale_sentences(scenario, found, usd_per_day),
            *waiting_sentences(found, usd_per_day),
            *optimal_sentences(found),
        ],
        "plan": {
            "id": plan.id,
            "accelerator": plan.offer.accelerator,
            "provider": plan.offer.provider,
            "instance_type": plan.offer.instance_type,
            "purchase": plan.offer.purchase,
            "num_gpus": plan.num_gpus,
        },
        "points": [_point(p) for p in found.points],
        "no_layout": list(found.no_layout),
        "not_searched": list(found.not_searched),
        "least_usd_num_gpus": _count(found.cheapest),
        "meets_deadline_num_gpus": None if deadline is None else _count(found.on_time),
        "in_budget_num_gpus": None if budget is None else _count(found.in_budget(budget)),
        "little_saved_num_gpus": _count(found.knee),
        "worth_num_gpus": None if usd_per_day is None else _count(found.worth(usd_per_day)),
        "waiting": _waiting(found.waiting),
        "compute_optimal": None if found.optimal is None else _optimal(found.optimal),
    }


def _count(point: Point | None) -> int | None:
    return None if point is None else point.plan.num_gpus


def _point(p: Point) -> Json:
    late, late_usd = number(p.hours_p90), p.expected_usd_p90
    return {
        "num_gpus": p.plan.num_gpus,
        "num_nodes": p.plan.num_nodes,
        "id": p.plan.id,
        "tokens_per_s": p.plan.tokens_per_s.p50,
        "mfu": p.plan.mfu,
        "efficiency": p.efficiency,
        "goodput": number(p.plan.cost.goodput) if isfinite(p.expected_hours) else None,
        "hours": {
            "steady": p.plan.wall_clock_hours,
            "expected": number(p.expected_hours),
            "p90": late,
            "p90_all": late,
        },
        "usd": None
        if p.plan.usd is None
        else {
            "steady": p.steady_usd,
            "expected": p.expected_usd,
            "p90": late_usd,
            "p90_all": late_usd,
        },
        "expected_hours": number(p.expected_hours),
        "expected_usd": p.expected_usd,
        "paid_usd": p.paid_usd,
        "gpu_hours_per_trillion_tokens": number(p.gpu_hours_per_trillion),
        "usd_per_trillion_tokens": p.usd_per_trillion,
        "usd_per_day_saved": p.usd_per_day_saved,
        "doubling": {
            "time_saved": p.doubling_saves,
            "usd_per_day_saved": p.doubling_usd_per_day,
        },
    }


def _waiting(found: Waiting) -> Json:
    trend = found.trend
    return {
        "why_not": found.why_not or None,
        "log_per_month": None if trend is None else trend.log_per_month,
        "by_seller": [] if trend is None else [
            {"provider": seller, "log_per_month": slope}
            for seller, slope in trend.by_seller.items()
        ],
        "num_prices": 0 if trend is None else trend.num_prices,
        "num_changes": 0 if trend is None else trend.num_changes,
        "first": None if trend is None or trend.first is None else trend.first.isoformat(),
        "last": None if trend is None or trend.last is None else trend.last.isoformat(),
        "waits": [asdict(w) for w in found.waits],
    }  # fmt: skip


def _optimal(found: Optimal) -> Json:
    return {
        "flops_per_usd": found.flops_per_usd,
        "usd": found.usd,
        "parameters": found.parameters,
        "tokens": found.tokens,
        "losses": [{"law": law.name, "loss": loss} for law, loss in found.losses],
        "same_usd": [_best(b) for b in found.same_usd],
        "curve": [_best(b) for b in found.curve],
        "chinchilla": {"tokens": found.chinchilla_tokens, "usd": found.chinchilla_usd},
        "has_experts": found.has_experts,
    }


def _best(b: Best) -> Json:
    return {
        "law": b.law.name,
        "source": b.law.source,
        "usd": b.usd,
        "flops": b.flops,
        "parameters": b.parameters,
        "tokens": b.tokens,
        "tokens_per_parameter": b.tokens_per_parameter,
        "loss": b.loss,
        "tokens_per_s": b.tokens_per_s,
        "gpu_hours_per_trillion_tokens": b.gpu_hours_per_trillion,
        "usd_per_trillion_tokens": b.usd_per_trillion,
    }
