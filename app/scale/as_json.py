"""When and how big as JSON: the keys that docs/scale.md documents. Add, never rename."""

from __future__ import annotations

from math import isfinite

from app.document.as_json import Json, as_json, attributes, number
from app.scale.optimal import Best, Optimal
from app.scale.points import Point, Scale
from app.scale.waiting import Waiting
from app.scale.words import optimal_sentences, scale_sentences, waiting_sentences
from app.scenario.link_query import document_head
from core.scenario import Scenario

SCHEMA_VERSION = 1
_PER_TRILLION = {
    "gpu_hours_per_trillion_tokens": "gpu_hours_per_trillion",
    "usd_per_trillion_tokens": "usd_per_trillion",
}


def scale_json(
    scenario: Scenario, found: Scale, usd_per_day: float | None = None
) -> dict[str, Json]:
    """The document of `runcast scale --json`; null: not known, or never ends."""
    plan, deadline, budget = found.plan, scenario.deadline_days, scenario.budget_usd
    return {
        **document_head(scenario, SCHEMA_VERSION),
        "sentences": [
            *scale_sentences(scenario, found, usd_per_day),
            *waiting_sentences(found, usd_per_day),
            *optimal_sentences(found),
        ],
        "plan": {
            **attributes(plan, "id", "num_gpus"),
            **attributes(plan.offer, "accelerator", "provider", "instance_type", "purchase"),
        },
        "points": [_point(p) for p in found.points],
        **attributes(found, "no_layout", "not_searched"),
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
    names = ("efficiency", "expected_hours", "expected_usd", "paid_usd", "usd_per_day_saved")
    return {
        **attributes(p.plan, "num_gpus", "num_nodes", "id", "mfu", tokens_per_s="tokens_per_s.p50"),
        **attributes(p, *names, **_PER_TRILLION),
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
        "doubling": attributes(
            p, time_saved="doubling_saves", usd_per_day_saved="doubling_usd_per_day"
        ),
    }


def _waiting(found: Waiting) -> Json:
    trend = found.trend
    slopes = {} if trend is None else trend.by_seller
    return {
        "why_not": found.why_not or None,
        "log_per_month": None if trend is None else trend.log_per_month,
        "by_seller": [
            {"provider": seller, "log_per_month": slope} for seller, slope in slopes.items()
        ],
        "num_prices": 0 if trend is None else trend.num_prices,
        "num_changes": 0 if trend is None else trend.num_changes,
        "first": None if trend is None or trend.first is None else trend.first.isoformat(),
        "last": None if trend is None or trend.last is None else trend.last.isoformat(),
        "waits": as_json(found.waits),
    }


def _optimal(found: Optimal) -> Json:
    return {
        **attributes(found, "flops_per_usd", "usd", "parameters", "tokens", "has_experts"),
        "losses": [{"law": law.name, "loss": loss} for law, loss in found.losses],
        "same_usd": [_best(b) for b in found.same_usd],
        "curve": [_best(b) for b in found.curve],
        "chinchilla": attributes(found, tokens="chinchilla_tokens", usd="chinchilla_usd"),
    }


def _best(b: Best) -> Json:
    names = "usd flops parameters tokens tokens_per_parameter loss tokens_per_s"
    return {
        **attributes(b.law, "source", law="name"),
        **attributes(b, *names.split(), **_PER_TRILLION),
    }
