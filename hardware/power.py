"""What machines draw beside their accelerators, and how much a project computes beside its run:
hardware/power.csv. A quantity has one row that bills use and any number of published ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError, shown
from hardware.tables import check_source, rows

POWER_CSV = Path(__file__).with_name("power.csv")
COLUMNS = ("quantity", "value", "unit", "role", "scope", "source", "source_date", "note")
QUANTITIES = ("host_over_gpu", "training_draw", "idle_draw", "pue", "experiment_share")
ROLES = ("default", "assumed", "published")


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerFact:
    """One fraction, and who printed it of what."""

    quantity: str
    value: float
    role: str
    scope: str
    source: str
    source_date: str
    note: str


def load_power(path: Path = POWER_CSV) -> tuple[PowerFact, ...]:
    """Read the table; a row without a role, a scope, a source or a number is an error, and so are
    two rows of one quantity that bills would use."""
    found: list[PowerFact] = []
    for where, row in rows(path, COLUMNS):
        name = row["quantity"]
        check_source(where, name, row)
        if name not in QUANTITIES:
            raise FactError(f"{where}: {shown(name)} is not one of {', '.join(QUANTITIES)}")
        if row["unit"] != "fraction":
            raise FactError(f"{where}: {name} has the unknown unit {shown(row['unit'])}")
        if row["role"] not in ROLES or not row["scope"]:
            raise FactError(f"{where}: {name} needs a scope, and one of {', '.join(ROLES)} as role")
        if row["role"] == "assumed" and not row["note"].startswith("assumed"):
            raise FactError(f"{where}: {name} is assumed and its note does not say what")
        if row["role"] != "published" and any(
            f.quantity == name and f.role != "published" for f in found
        ):
            raise FactError(f"{where}: {name} already has a value that bills use")
        found.append(
            PowerFact(
                quantity=name,
                value=_number(where, row["value"]),
                role=row["role"],
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
def power() -> tuple[PowerFact, ...]:
    """The shipped table, read once."""
    return load_power()


def used(quantity: str) -> PowerFact:
    """The row of this quantity that bills use."""
    return next(f for f in power() if f.quantity == quantity and f.role != "published")


def published(quantity: str) -> tuple[PowerFact, ...]:
    """Every row of this quantity that somebody printed."""
    return tuple(f for f in power() if f.quantity == quantity and f.role != "assumed")
