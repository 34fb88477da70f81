"""A plan with failures as JSON: the keys that docs/risk.md documents. Add, never rename."""

from __future__ import annotations

from app.document.as_json import Json, as_json, attributes, number
from app.plan.as_json import brief_json
from app.risk.risk import Risk
from app.risk.words import risk_sentences
from app.scenario.link_query import document_head
from core.cost.uncertain import Uncertain
from core.scenario import Scenario
from core.units import HOUR_S

SCHEMA_VERSION = 1


def risk_json(scenario: Scenario, risk: Risk) -> dict[str, Json]:
    """The document of `runcast risk --json`; null: could not be computed."""
    rate, cost, finishes = float(risk.job.failures_per_s), risk.plan.cost, risk.finishes
    return {
        **document_head(scenario, SCHEMA_VERSION),
        "sentences": list(risk_sentences(scenario, risk)),
        "plan": brief_json(risk.plan),
        "finishes": finishes,
        "attempt_probability": risk.attempt_probability,
        "failures": number(cost.failures) if finishes else None,
        "mean_hours_to_failure": 1 / rate / HOUR_S if rate else None,
        "goodput": risk.goodput if finishes else None,
        "hours": spread_json(risk.hours),
        "usd": spread_json(risk.usd),
        "paid": spread_json(risk.plan.paid if finishes else None),
        **attributes(cost, "failures_only_hours", "failures_only_usd"),
        "misses_deadline_probability": risk.misses_deadline,
        "badput_hours": as_json(cost.hour_terms) if finishes else None,
        "checkpoint_intervals": [
            {
                "name": i.name,
                "interval_s": min(i.interval_s, float(risk.job.work_s)),
                "expected_hours": number(i.expected_hours),
            }
            for i in risk.intervals
        ],
        "published_rates": [
            {"failures_per_node_day": r, "expected_hours": number(hours)} for r, hours in risk.rates
        ],
        "simulated_hours": None
        if risk.bursty is None
        else dict(zip(("expected", "p50", "p90"), map(number, risk.bursty), strict=True)),
        "inputs": as_json(risk.inputs),
    }


def spread_json(figures: Uncertain | None) -> Json:
    """Every figure of hours or dollars; the keys that end in `_all` repeat the others."""
    if figures is None:
        return None
    names = {"expected": "mean", "p10_all": "p10", "p50_all": "p50", "p90_all": "p90"}
    return attributes(figures, "p50", "p90", **names)
