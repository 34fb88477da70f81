"""Decisions as JSON: the documented, versioned schema of `runcast decide --json`.

docs/decision-tables.md documents every key; keys are promises: add, never rename.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlencode

from app.document.as_json import Json
from app.forecast.one_case import Miss, Run
from app.guides.decision import Alternative, Decision
from app.guides.decisions import counts, in_tables
from app.guides.strategies import strategy
from app.scenario.layout import layout_text
from hardware.decision_tables import TABLES

SCHEMA_VERSION = 1


def decisions_json(found: Iterable[Decision]) -> dict[str, Json]:
    """Every decision under its table, and how many cases had each verdict."""
    kept = tuple(found)
    return {
        "schema_version": SCHEMA_VERSION,
        "verdicts": _counted(kept),
        "tables": [
            {
                "table": letter,
                "title": TABLES[letter],
                "verdicts": _counted(rows),
                "rows": [_row(d) for d in rows],
            }
            for letter, rows in in_tables(kept).items()
        ],
    }


def _counted(found: Iterable[Decision]) -> dict[str, Json]:
    return {verdict.replace(" ", "_"): n for verdict, n in counts(found).items()}


def _row(d: Decision) -> dict[str, Json]:
    return {
        "id": d.advice.id,
        "case": d.advice.case,
        "published": d.advice.advice,
        "source": d.advice.source,
        "source_date": d.advice.source_date,
        "job": d.job,
        "recommends": d.recommends,
        "details": d.details,
        "reasons": list(d.reasons),
        "verdict": d.verdict.replace(" ", "_"),
        "disagreement": d.disagreement or None,
        "link": urlencode(d.link, safe=",/:") if d.link else None,
        "layout": layout_text(d.run.layout) if d.run else None,
        "alternatives": [_alternative(a, d.run) for a in d.alternatives],
    }


def _alternative(a: Alternative, chosen: Run | None) -> dict[str, Json]:
    """One way: whether it fits, how long its step takes, or what it lacks."""
    found = a.found
    run = found if isinstance(found, Run) else None
    return {
        "way": a.way,
        "words": a.words,
        "published": a.published,
        "fits": "no" if run is None else "tight" if run.is_tight else "yes",
        "strategy": strategy(run) if run else None,
        "step_s": run.step_s if run else None,
        "slower": run.step_s / chosen.step_s - 1 if run and chosen else None,
        "memory_bytes": found.need_bytes or None,
        "memory_capacity_bytes": found.limit_bytes or None,
        "host_bytes": found.host_bytes or None,
        "probability_oom": run.probability_oom if run else None,
        "rule": found.rule or None if isinstance(found, Miss) else None,
    }
