"""How often clusters fail and how long they take to restart: hardware/reliability.csv.

A quantity has at most one row that forecasts use, a published default or a stated assumption, and
any number of published ones beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from core.errors import FactError, shown
from core.units import TO_SI
from hardware.tables import check_source, rows

RELIABILITY_CSV = Path(__file__).with_name("reliability.csv")
COLUMNS = ("quantity", "value", "unit", "role", "scope", "source", "source_date", "note")
Role = Literal["default", "assumed", "published"]
QUANTITIES = (
    "failures_per_node_day", "job_failures_per_day", "detection_s", "restart_s", "wait_s",
    "node_start_s", "slow_probability", "slow_fraction", "checkpoint_bytes_per_s", "checkpoint_s",
    "upload_s", "goodput",
)  # fmt: skip
# A day stays a day here: core/failures.py turns rates into seconds.
UNITS = {**TO_SI, "per node-day": 1.0, "per day": 1.0, "min": 60.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityFact:
    """One figure, in the unit its quantity ends with."""

    quantity: str
    value: float
    role: Role
    printed: str  # the number and unit of the source
    scope: str  # which cluster or job it is of
    source: str
    source_date: str
    note: str


def load_reliability(path: Path = RELIABILITY_CSV) -> tuple[ReliabilityFact, ...]:
    """Read the table; a row without unit, role, scope or source is an error, and so are two rows
    of one quantity that forecasts would use."""
    found: list[ReliabilityFact] = []
    for where, row in rows(path, COLUMNS):
        name = row["quantity"]
        check_source(where, name, row)
        if name not in QUANTITIES:
            raise FactError(f"{where}: {shown(name)} is not one of {', '.join(QUANTITIES)}")
        if row["unit"] not in UNITS:
            raise FactError(f"{where}: {name} has the unknown unit {shown(row['unit'])}")
        if row["role"] not in get_args(Role) or not row["scope"]:
            raise FactError(
                f"{where}: {name} needs a scope, and one of {', '.join(get_args(Role))} as role"
            )
        role = next(r for r in get_args(Role) if r == row["role"])
        if role == "assumed" and not row["note"].startswith("assumed"):
            raise FactError(f"{where}: {name} is assumed and its note does not say what")
        if role != "published" and any(f.quantity == name and f.role != "published" for f in found):
            raise FactError(f"{where}: {name} already has a value that forecasts use")
        found.append(
            ReliabilityFact(
                quantity=name,
                value=_number(where, row["value"]) * UNITS[row["unit"]],
                role=role,
                printed=f"{row['value']} {row['unit']}",
                scope=row["scope"],
                source=row["source"],
                source_date=row["source_date"],
                note=row["note"],
            )
        )
    return tuple(found)


def _number(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as e:
        raise FactError(f"{where}: {e}") from None
    if not (math.isfinite(value) and value >= 0):
        raise FactError(f"{where}: {text} is not a number of at least 0")
    return value


@cache
def reliability() -> tuple[ReliabilityFact, ...]:
    """The shipped table, read once."""
    return load_reliability()


def used(quantity: str) -> ReliabilityFact:
    """The row of this quantity that forecasts use."""
    return next(f for f in reliability() if f.quantity == quantity and f.role != "published")


def published(quantity: str) -> tuple[ReliabilityFact, ...]:
    """Every row of this quantity that somebody printed."""
    return tuple(f for f in reliability() if f.quantity == quantity and f.role != "assumed")
