"""The provenance of a plan as JSON, with the keys of docs/provenance.md: add, never rename."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from app.document import format as fmt
from app.document.as_json import Json, number
from app.provenance.age import url_in
from app.provenance.document import source_text
from app.provenance.record import Record, undated, walked
from app.scenario.link_query import link_query
from core.scenario import Scenario
from core.search.plan import Plan
from pricing.offers import snapshot

SCHEMA_VERSION = 2
FORMER = {"expected_usd": "total_usd", "expected_hours": "total_hours"}  # other keys of the same


def provenance_json(
    scenario: Scenario, plan: Plan, records: tuple[Record, ...], today: dt.date
) -> dict[str, Json]:
    """The JSON document that `runcast where --json` prints."""
    return {
        "schema_version": SCHEMA_VERSION,
        "link": link_query(scenario, snapshot(scenario.prices).id),
        "plan": {
            "id": plan.id,
            "rank": plan.rank,
            "accelerator": plan.offer.accelerator,
            "num_gpus": plan.num_gpus,
        },
        "shown": [r.key for r in records],
        "numbers": [
            *(_number(r, today) for r in walked(records)),
            *(_number(replace(r, key=FORMER[r.key]), today) for r in records if r.key in FORMER),
        ],
    }


def _number(r: Record, today: dt.date) -> Json:
    method, source = r.computed_as, r.source or undated("")
    return {
        "key": r.key,
        "label": r.label,
        "value": number(r.value),
        "unit": r.unit,
        "text": r.text,
        "kind": r.kind,
        "inputs": [i.key for i in r.inputs],
        "source": source_text(r),
        "source_url": url_in(source.ref),
        "source_date": source.date,
        "source_prints": source.printed,
        "age_days": fmt.age_days(source.date, today),
        "method": method.formula if method else "",
        "method_source": method.source if method else "",
        "module": method.module if method else "",
        "note": r.note,
    }
