"""A plan with failures as JSON: the keys that docs/risk.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict

from app.document.as_json import Json, number
from app.plan.as_json import brief_json
from app.risk.risk import Risk, Spread
from app.risk.words import risk_sentences
from app.scenario.link_query import link_query
from core.scenario import Scenario
from core.units import HOUR_S
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def risk_json(scenario: Scenario, risk: Risk) -> dict[str, Json]:
    """The document of `runcast risk --json`; null: could not be computed."""
    rate = float(risk.job.failures_per_s)
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(scenario, snapshot(scenario.prices).id),
        "sentences": list(risk_sentences(scenario, risk)),
        "plan": brief_json(risk.plan),
        "finishes": risk.finishes,
        "attempt_probability": risk.attempt_probability,
        "failures": risk.failures if risk.finishes else None,
        "mean_hours_to_failure": 1 / rate / HOUR_S if rate else None,
        "goodput": risk.goodput if risk.finishes else None,
        "hours": spread_json(risk.hours),
        "usd": spread_json(risk.usd),
        "misses_deadline_probability": risk.misses_deadline,
        "badput_hours": dict(risk.lost_hours) or None,
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
        "inputs": [asdict(i) for i in risk.inputs],
    }


def spread_json(spread: Spread | None) -> Json:
    """Every figure of a spread of hours or dollars."""
    return None if spread is None else {k: number(v) for k, v in asdict(spread).items()}
