"""The provenance of a plan as JSON, with the keys of docs/provenance.md: add, never rename."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from app.document import format as fmt
from app.document.as_json import Json, attributes
from app.provenance.age import url_in
from app.provenance.document import source_text
from app.provenance.record import Record, undated, walked
from app.scenario.link_query import document_head
from core.scenario import Scenario
from core.search.plan import Plan

SCHEMA_VERSION = 2
FORMER = {"expected_usd": "total_usd", "expected_hours": "total_hours"}  # other keys of the same


def provenance_json(
    scenario: Scenario, plan: Plan, records: tuple[Record, ...], today: dt.date
) -> dict[str, Json]:
    """The JSON document that `runcast where --json` prints."""
    return {
        **document_head(scenario, SCHEMA_VERSION),
        "plan": attributes(plan, "id", "rank", "num_gpus", accelerator="offer.accelerator"),
        "shown": [r.key for r in records],
        "numbers": [
            *(_number(r, today) for r in walked(records)),
            *(_number(replace(r, key=FORMER[r.key]), today) for r in records if r.key in FORMER),
        ],
    }


def _number(r: Record, today: dt.date) -> Json:
    method, source = r.computed_as, r.source or undated("")
    return {
        **attributes(r, "key", "label", "value", "unit", "text", "kind", "note"),
        "inputs": [i.key for i in r.inputs],
        "source": source_text(r),
        "source_url": url_in(source.ref),
        **attributes(source, source_date="date", source_prints="printed"),
        "age_days": fmt.age_days(source.date, today),
        "method": method.formula if method else "",
        "method_source": method.source if method else "",
        "module": method.module if method else "",
    }
