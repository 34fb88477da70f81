"""Forecast errors and regret on runs left out of the fit: cross_validation.csv and choices.csv.

A fit takes a minute, so its folds are not refitted when a page opens: `make fit` measures them and
writes both tables, one figure a row. A value is a fraction; `rows` is the number of runs it is
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
from core.evidence.choice import MEASURES as CHOICE_MEASURES
from core.evidence.choice import Estimate
from hardware.tables import is_date, rows

CROSS_VALIDATION_CSV = Path(__file__).with_name("cross_validation.csv")
CHOICES_CSV = Path(__file__).with_name("choices.csv")
COLUMNS = ("split", "measure", "value", "rows", "date")
# fitted: the fit saw the rows. grouped: it saw no row of the same source, model and accelerator.
# new_source: it saw no row of the same publication.
# new_stack: it saw no row of the same family of stacks, which gets an unknown stack's fractions.
# unknown_stack: the same, and what a blank of a row means is not known of its stack, either.
# new_accelerator: it saw no row of the same accelerator.
# newest: it saw only rows older than the newest six months, which alone are scored.
SPLITS = (
    "fitted", "grouped", "new_source", "new_stack", "unknown_stack", "new_accelerator", "newest"
)  # fmt: skip
# Parts of new_source: the rows of a stack that other publications have, too, and the rows of a
# machine after one run on it was measured (app/accuracy/closeness.py).
PARTS = ("known_stack", "measured_once")
MEASURES = (
    "median", "mean", "p90", "within_20", "coverage", "moe_median", "family_median",
    "memory_median", "memory_p90",
)  # fmt: skip
CHOICE_COLUMNS = (
    "split", "grouping", "measure", "value", "low", "high", "groups", "configurations",
    "publications", "date",
)  # fmt: skip
CHOICE_SPLITS = ("new_source", "unknown_stack")
GROUPINGS = ("layout", "count", "machine")  # app/accuracy/choices.py
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
        if key[0] not in (*SPLITS, *PARTS) or not (
            key[1] in MEASURES or key[1].startswith(CLASS_COVERAGE)
        ):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceFigure:
    """One figure of choices by forecast (core/evidence/choice.py), and what it was measured on."""

    estimate: Estimate
    groups: int
    configurations: int
    publications: int
    date: str  # when it was measured


ChoiceFigures = Mapping[tuple[str, str, str], ChoiceFigure]  # (split, grouping, measure) -> figure


def load_choices(path: Path = CHOICES_CSV) -> dict[tuple[str, str, str], ChoiceFigure]:
    """Read the table; an impossible or repeated figure is an error."""
    found: dict[tuple[str, str, str], ChoiceFigure] = {}
    for where, row in rows(path, CHOICE_COLUMNS):
        key = (row["split"], row["grouping"], row["measure"])
        named = zip(key, (CHOICE_SPLITS, GROUPINGS, CHOICE_MEASURES), strict=True)
        if unknown := [f"{shown(n)} is none of {', '.join(all_)}" for n, all_ in named
                       if n not in all_]:  # fmt: skip
            raise FactError(f"{where}: {unknown[0]}")
        if key in found:
            raise FactError(f"{where}: {' '.join(key)} is given twice")
        try:
            value, low, high = (float(row[name]) for name in ("value", "low", "high"))
            counts = [int(row[name]) for name in ("groups", "configurations", "publications")]
        except ValueError as e:
            raise FactError(f"{where}: {e}") from None
        if not (math.isfinite(value + low + high) and low <= high and min(counts) > 0):
            raise FactError(f"{where}: {' '.join(key)} is not a figure with its interval and count")
        if not is_date(row["date"]):
            raise FactError(f"{where}: {shown(row['date'])} is not a date")
        found[key] = ChoiceFigure(
            estimate=Estimate(value=value, low=low, high=high),
            groups=counts[0],
            configurations=counts[1],
            publications=counts[2],
            date=row["date"],
        )
    return found


@cache
def choice_figures() -> ChoiceFigures:
    """The shipped table, read once."""
    return load_choices()


def chosen_shrink() -> float:
    """The shrink of core.evidence.choice.chosen_correction for a plan that was chosen among
    machines and stacks, measured on publications that the fit had not seen."""
    return min(max(choice_figures()["new_source", "machine", "shrink"].estimate.value, 0.0), 1.0)


def write_choices(
    measured: Iterable[tuple[str, str, str, ChoiceFigure]], path: Path = CHOICES_CSV
) -> None:
    """Write the table anew: (split, grouping, measure, figure), in the order given."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(CHOICE_COLUMNS)
        for *key, m in measured:
            e = m.estimate
            numbers = (f"{x:.4g}" for x in (e.value, e.low, e.high))
            counts = (m.groups, m.configurations, m.publications)
            writer.writerow([*key, *numbers, *counts, m.date])
