"""A plan with failures as JSON: the keys that docs/risk.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict, fields

from app.document.as_json import Json, number
from app.plan.as_json import brief_json
from app.risk.risk import Risk, Spread
from app.risk.words import risk_sentences
from app.scenario.link_query import link_query
from core.failures.goodput import Badput
from core.scenario import Scenario
from core.units import HOUR_S
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def risk_json(scenario: Scenario, risk: Risk) -> dict[str, Json]:
    """The document of `runcast risk --json`; null: could not be computed."""
    plan, lost = risk.plan, risk.badput
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(scenario, snapshot(scenario.prices).id),
        "sentences": list(risk_sentences(scenario, risk)),
        "plan": brief_json(plan),
        "finishes": risk.finishes,
        "attempt_probability": risk.attempt_probability,
        "failures": risk.failures if risk.finishes else None,
        "mean_hours_to_failure": number(_inverse(float(risk.job.failures_per_s)) / HOUR_S),
        "goodput": risk.goodput if risk.finishes else None,
        "hours": _spread(risk.hours),
        "usd": _spread(risk.usd),
        "misses_deadline_probability": risk.misses_deadline,
        "badput_hours": None if lost is None else _badput(lost, risk.straggler_hours),
        "checkpoint_intervals": [
            {
                "name": i.name,
                "interval_s": min(i.interval_s, float(risk.job.work_s)),
                "expected_hours": number(i.expected_hours),
            }
            for i in risk.intervals
        ],
        "published_rates": [
            {"failures_per_node_day": rate, "expected_hours": number(hours)}
            for rate, hours in risk.rates
        ],
        "simulated_hours": None
        if risk.bursty is None
        else dict(zip(("expected", "p50", "p90"), map(number, risk.bursty), strict=True)),
        "inputs": [asdict(i) for i in risk.inputs],
    }


def _badput(lost: Badput, slow_nodes: float) -> dict[str, Json]:
    """Hours lost by cause; with the plan's wall_clock_hours they add up to hours.expected."""
    parts = {f.name.removesuffix("_s"): getattr(lost, f.name) / HOUR_S for f in fields(lost)}
    return {**{name: float(hours) for name, hours in parts.items()}, "slow_nodes": slow_nodes}


def _spread(spread: Spread | None) -> Json:
    return None if spread is None else {k: number(v) for k, v in asdict(spread).items()}


def _inverse(rate: float) -> float:
    return 1 / rate if rate else float("inf")
