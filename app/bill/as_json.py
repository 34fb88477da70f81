"""A bill as JSON: the keys that docs/bill.md documents. Add, never rename."""

from __future__ import annotations

from dataclasses import asdict

from app.bill.bill import Bill, bill_sentences
from app.bill.line import Line
from app.document.as_json import Json
from app.scenario.link_query import link_query
from core.money.bill import Figure
from core.numeric import as_float
from core.scenario import Scenario
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def bill_json(scenario: Scenario, found: Bill) -> dict[str, Json]:
    """The document of `runcast bill --json`; null: not known or not priced."""
    plan, energy, hours = found.plan, found.energy, found.hours
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(scenario, snapshot(scenario.prices).id),
        "sentences": list(bill_sentences(scenario, found)),
        "plan": {
            "id": plan.id,
            "accelerator": plan.offer.accelerator,
            "provider": plan.offer.provider,
            "region": plan.offer.region,
            "purchase": plan.offer.purchase,
            "num_gpus": plan.num_gpus,
            "wall_clock_hours": plan.wall_clock_hours,
            "usd": None if plan.usd is None else plan.usd.p50,
        },
        "hours": {
            "training": _figure(hours.training),
            "checkpoints": _figure(hours.checkpoints),
            "failures": _figure(hours.failures),
            "waiting": _figure(hours.waiting),
            "startup": _figure(hours.startup),
            "total": _figure(hours.total),
        },
        "lines": [_line(x, "usd") for x in found.lines],
        "total_usd": _figure(found.total),
        "not_priced": [line.name for line in found.not_priced],
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


def _figure(figure: Figure | None) -> Json:
    if figure is None:
        return None
    return {name: as_float(value) for name, value in asdict(figure).items()}
