"""The provenance of a plan as tables and as JSON: the columns and keys of docs/provenance.md."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd

from app.document import format as fmt
from app.document.as_json import Json
from app.provenance.age import age_of, is_old_price, url_in
from app.provenance.record import KINDS, NOT_RECORDED, Record, walked
from app.scenario.link_query import link_query
from core.scenario import Scenario
from core.search.plan import Plan
from pricing.offers import snapshot

SCHEMA_VERSION = 1


def source_text(record: Record) -> str:
    """Where a number was read; of a computed one by what it is computed."""
    if record.kind == "computed":
        found = record.computed_as
        return f"{found.module}" if found is not None else "from the inputs"
    if record.source is None or not record.source.ref:
        return NOT_RECORDED
    return record.source.ref


def _date(record: Record) -> str:
    return "" if record.source is None else record.source.date


def inputs(record: Record, today: dt.date) -> pd.DataFrame:
    """The inputs of one number, as the page shows them."""
    return pd.DataFrame(
        {
            "Input": [r.label for r in record.inputs],
            "Value": [r.text for r in record.inputs],
            "Kind": [r.kind for r in record.inputs],
            "Source": [source_text(r) for r in record.inputs],
            "Age": [_age(r, today) for r in record.inputs],
            "Symbol": [r.key for r in record.inputs],
        }
    )


def _age(record: Record, today: dt.date) -> str:
    if record.kind == "computed":
        return fmt.MISSING
    age = age_of(_date(record), today)
    return f"{age}: an old price" if is_old_price(record, today) else age


def whole(records: tuple[Record, ...], today: dt.date) -> pd.DataFrame:
    """Every number and input once, with what uses it: what is downloaded."""
    every = list(walked(records))
    used: dict[str, list[str]] = {}
    for r in every:
        for i in r.inputs:
            used.setdefault(i.key, []).append(r.key)
    ages = [fmt.age_days(_date(r), today) for r in every]
    return pd.DataFrame(
        {
            "Number": [r.key for r in every],
            "Name": [r.label for r in every],
            "Value": [np.nan if r.value is None else r.value for r in every],
            "Unit": [r.unit for r in every],
            "As shown": [r.text for r in every],
            "Kind": [r.kind for r in every],
            "Formula": [r.formula for r in every],
            "Numbers put in": [r.with_numbers for r in every],
            "Used in": [" ".join(used.get(r.key, [])) for r in every],
            "Source": [source_text(r) for r in every],
            "Source date": [_date(r) for r in every],
            "Age (days)": [np.nan if a is None else float(a) for a in ages],
            "Printed": ["" if r.source is None else r.source.printed for r in every],
            "Method": [m.formula if (m := r.computed_as) else "" for r in every],
            "After": [m.source if (m := r.computed_as) else "" for r in every],
            "Note": [r.note for r in every],
        }
    )


def counts_sentence(records: tuple[Record, ...]) -> str:
    """How many numbers there are of each kind."""
    count = Counter(r.kind for r in walked(records))
    told = ", ".join(f"{fmt.count(count[k])} {k}" for k in KINDS if count[k])
    return f"Behind this plan stand {fmt.count(sum(count.values()))} numbers: {told}."


def provenance_json(
    scenario: Scenario, plan: Plan, records: tuple[Record, ...], today: dt.date
) -> dict[str, Json]:
    """The document of `runcast where --json`. Add keys, never rename."""
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
        "source_date": _date(r),
        "source_prints": "" if r.source is None else r.source.printed,
        "age_days": fmt.age_days(_date(r), today),
        "method": "" if method is None else method.formula,
        "method_source": "" if method is None else method.source,
        "module": "" if method is None else method.module,
        "note": r.note,
    }
