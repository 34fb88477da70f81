"""Published accuracy of other estimators: hardware/published_estimators.csv.

Their figures are not for the runs that ours are for: `scope` is what each was measured on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from hardware.tables import check_source, rows

ESTIMATORS_CSV = Path(__file__).with_name("published_estimators.csv")
COLUMNS = ("estimator", "measure", "value", "unit", "scope", "source", "source_date")
UNITS = ("%",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedAccuracy:
    """One figure as its source prints it."""

    estimator: str
    measure: str
    value: float
    unit: str
    scope: str
    source: str
    source_date: str


def load_estimators(path: Path = ESTIMATORS_CSV) -> tuple[PublishedAccuracy, ...]:
    """Read the table; a figure without unit, scope or source is an error."""
    found = []
    for where, row in rows(path, COLUMNS):
        check_source(where, row["estimator"], row)
        if missing := [c for c in ("estimator", "measure", "scope") if not row[c]]:
            raise FactError(f"{where}: the row has no {', '.join(missing)}")
        if row["unit"] not in UNITS:
            raise FactError(f"{where}: unit {shown(row['unit'])} is not one of {', '.join(UNITS)}")
        try:
            value = float(row["value"])
        except ValueError as e:
            raise FactError(f"{where}: {e}") from None
        if not 0 < value <= 100:
            raise FactError(f"{where}: {row['value']}% is not between 0 and 100")
        texts = {name: row[name] for name in COLUMNS if name != "value"}
        found.append(PublishedAccuracy(value=value, **texts))
    return tuple(found)


@cache
def estimators() -> tuple[PublishedAccuracy, ...]:
    """The shipped table, read once."""
    return load_estimators()
