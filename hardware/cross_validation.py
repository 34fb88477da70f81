"""Forecast errors on runs left out of the fit: hardware/cross_validation.csv.

A fit takes minutes, so its folds are not refitted when a page opens: `make fit` measures them and
writes this table, one figure a row. `value` is a fraction; `rows` is the number of runs it is
scored on.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from hardware.tables import is_date, rows

CROSS_VALIDATION_CSV = Path(__file__).with_name("cross_validation.csv")
COLUMNS = ("split", "measure", "value", "rows", "date")
# fitted: the fit saw the rows. grouped: it saw no row of the same source, model and accelerator.
# new_source: it saw no row of the same publication.
# new_stack: it saw no row of the same family of stacks, which is forecast as an unknown one.
# new_accelerator: it saw no row of the same accelerator.
SPLITS = ("fitted", "grouped", "new_source", "new_stack", "new_accelerator")
MEASURES = (
    "median", "mean", "p90", "within_20", "coverage", "moe_median", "family_median",
    "memory_median", "memory_p90",
)  # fmt: skip
CLASS_COVERAGE = "coverage of "  # followed by a class of rows: 'coverage of accelerator=GB200'


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One figure of one split."""

    value: float  # fraction
    rows: int
    date: str  # when it was measured


CrossValidation = Mapping[tuple[str, str], Measured]  # (split, measure) -> figure


def load_cross_validation(path: Path = CROSS_VALIDATION_CSV) -> dict[tuple[str, str], Measured]:
    """Read the table; an impossible or repeated figure is an error. A missing figure was not
    measured."""
    found: dict[tuple[str, str], Measured] = {}
    for where, row in rows(path, COLUMNS):
        key = (row["split"], row["measure"])
        if key[0] not in SPLITS or not (key[1] in MEASURES or key[1].startswith(CLASS_COVERAGE)):
            raise FactError(
                f"{where}: {shown(key[0])} {shown(key[1])} is not a split of {', '.join(SPLITS)} "
                f"and a measure of {', '.join(MEASURES)}"
            )
        if key in found:
            raise FactError(f"{where}: {' '.join(key)} is given twice")
        try:
            value, count = float(row["value"]), int(row["rows"])
        except ValueError as e:
            raise FactError(f"{where}: {e}") from None
        if not (math.isfinite(value) and value >= 0 and count > 0):
            raise FactError(f"{where}: {' '.join(key)} is not a fraction of some rows")
        if not is_date(row["date"]):
            raise FactError(f"{where}: {shown(row['date'])} is not a date")
        found[key] = Measured(value=value, rows=count, date=row["date"])
    return found


@cache
def cross_validation() -> CrossValidation:
    """The shipped table, read once."""
    return load_cross_validation()


def write_cross_validation(
    measured: Iterable[tuple[str, str, Measured]], path: Path = CROSS_VALIDATION_CSV
) -> None:
    """Write the table anew: (split, measure, figure), in the order given."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for split, measure, m in measured:
            writer.writerow([split, measure, f"{m.value:.4g}", m.rows, m.date])
