"""Published advice as JSON: the documented, versioned schema of `runcast advice --json`.

docs/decision-tables.md documents every key; keys are promises: add, never rename.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.document.as_json import Json, attributes
from app.guides.document import counts, in_tables
from hardware.decision_tables import TABLES, Advice

SCHEMA_VERSION = 2


def advice_json(rows: Iterable[Advice]) -> dict[str, Json]:
    """Every row under its table, and how many cases had each verdict."""
    kept = tuple(rows)
    return {
        "schema_version": SCHEMA_VERSION,
        "verdicts": _counted(kept),
        "tables": [
            {
                "table": letter,
                "title": TABLES[letter],
                "verdicts": _counted(inside),
                "rows": [_row(row) for row in inside],
            }
            for letter, inside in in_tables(kept).items()
        ],
    }


def _counted(rows: Iterable[Advice]) -> dict[str, Json]:
    return {verdict.replace(" ", "_"): n for verdict, n in counts(rows).items()}


def _row(row: Advice) -> dict[str, Json]:
    return {
        **attributes(row, "id", "case"),
        "published": row.advice,
        **attributes(row, "source", "source_date", "job", "recommends", "details"),
        "reasons": list(row.reasons),
        "verdict": row.verdict.replace(" ", "_"),
        "disagreement": row.disagreement or None,
        "link": row.link or None,
        "layout": row.layout or None,
        **attributes(row, "computed_with", "computed"),
    }
