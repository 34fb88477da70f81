"""The provenance of a plan as JSON, with the keys of docs/provenance.md: add, never rename."""

from __future__ import annotations

import datetime as dt

import numpy as np

from app.document import format as fmt
from app.document.as_json import Json
from app.provenance.age import url_in
from app.provenance.document import source_date, source_text
from app.provenance.record import Record, walked
from app.scenario.link_query import link_query
from core.scenario import Scenario
from core.search.plan import Plan
from pricing.offers import snapshot

SCHEMA_VERSION = 1


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
        "numbers": [_number(r, today) for r in walked(records)],
    }


def _number(r: Record, today: dt.date) -> Json:
    method = r.computed_as
    finite = r.value is not None and np.isfinite(r.value)
    ref = "" if r.source is None else r.source.ref
    return {
        "key": r.key,
        "label": r.label,
        "value": r.value if finite else None,
        "unit": r.unit,
        "text": r.text,
        "kind": r.kind,
        "formula": r.formula,
        "numbers_put_in": r.with_numbers,
        "inputs": [i.key for i in r.inputs],
        "source": source_text(r),
        "source_url": url_in(ref),
        "source_date": source_date(r),
        "source_prints": "" if r.source is None else r.source.printed,
        "age_days": fmt.age_days(source_date(r), today),
        "method": "" if method is None else method.formula,
        "method_source": "" if method is None else method.source,
        "module": "" if method is None else method.module,
        "note": r.note,
    }
