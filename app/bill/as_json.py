"""A bill as JSON: the keys that docs/bill.md documents. Add, never rename."""

from __future__ import annotations

from app.bill.bill import Bill, bill_sentences
from app.bill.line import Line
from app.document.as_json import Json, attributes
from app.scenario.link_query import document_head
from core.cost.uncertain import Uncertain
from core.scenario import Scenario

SCHEMA_VERSION = 1


def bill_json(scenario: Scenario, bill: Bill) -> dict[str, Json]:
    """The document of `runcast bill --json`; null: not known or not priced."""
    plan, energy = bill.plan, bill.energy
    return {
        **document_head(scenario, SCHEMA_VERSION),
        "sentences": list(bill_sentences(scenario, bill)),
        "plan": {
            **attributes(plan, "id", "num_gpus", "wall_clock_hours", "paid_usd", usd="usd.p50"),
            **attributes(plan.offer, "accelerator", "provider", "region", "purchase"),
        },
        "hours": {name: _figure(hours) for name, hours in bill.hours.items()},
        "lines": [_line(x, "usd") for x in bill.lines],
        "total_usd": _figure(bill.total),
        "not_priced": [line.name for line in bill.not_priced],
        "energy": {
            **attributes(energy, "pue", "pue_basis"),
            "lines": [_line(x, "kwh") for x in energy.lines],
            "total_kwh": _figure(energy.total),
        },
        "carbon": _line(energy.carbon, "kg_co2e"),
        "marginal_carbon": _line(energy.marginal, "kg_co2e"),
    }


def _line(line: Line, unit: str) -> Json:
    return {**attributes(line, "name", "label", "status", "how"), unit: _figure(line.figure)}


def _figure(figures: Uncertain | None) -> Json:
    """P10, mean and P90."""
    if figures is None:
        return None
    return attributes(figures, lower="p10", expected="mean", upper="p90")
