"""A bill as JSON: the keys that docs/bill.md documents. Add, never rename."""

from __future__ import annotations

from app.bill.bill import Bill, bill_sentences
from app.bill.line import Line
from app.document.as_json import Json, number
from app.scenario.link_query import link_query
from core.cost.uncertain import Uncertain
from core.scenario import Scenario
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def bill_json(scenario: Scenario, bill: Bill) -> dict[str, Json]:
    """The document of `runcast bill --json`; null: not known or not priced."""
    plan, energy = bill.plan, bill.energy
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(scenario, snapshot(scenario.prices).id),
        "sentences": list(bill_sentences(scenario, bill)),
        "plan": {
            "id": plan.id,
            "accelerator": plan.offer.accelerator,
            "provider": plan.offer.provider,
            "region": plan.offer.region,
            "purchase": plan.offer.purchase,
            "num_gpus": plan.num_gpus,
            "wall_clock_hours": plan.wall_clock_hours,
            "usd": None if plan.usd is None else plan.usd.p50,
            "paid_usd": number(plan.paid_usd),
        },
        "hours": {name: _figure(hours) for name, hours in bill.hours.items()},
        "lines": [_line(x, "usd") for x in bill.lines],
        "total_usd": _figure(bill.total),
        "not_priced": [line.name for line in bill.not_priced],
        "energy": {
            "pue": energy.pue,
            "pue_basis": energy.pue_basis,
            "lines": [_line(x, "kwh") for x in energy.lines],
            "total_kwh": _figure(energy.total),
        },
        "carbon": _line(energy.carbon, "kg_co2e"),
        "marginal_carbon": _line(energy.marginal, "kg_co2e"),
    }


def _line(line: Line, unit: str) -> Json:
    return {
        "name": line.name,
        "label": line.label,
        "status": line.status,
        unit: _figure(line.figure),
        "how": line.how,
    }


def _figure(figures: Uncertain | None) -> Json:
    """P10, mean and P90."""
    if figures is None:
        return None
    return {
        "lower": number(figures.p10),
        "expected": number(figures.mean),
        "upper": number(figures.p90),
    }
