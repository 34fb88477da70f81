"""Tables of facts with one row per quantity in use, and any number of published ones.

A row is a `default` (published, and used), `assumed` (used; its note has the assumption) or
`published`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from core.errors import FactError, shown
from hardware.tables import check_source, rows

COLUMNS = ("quantity", "value", "unit", "role", "scope", "source", "source_date", "note")
Role = Literal["default", "assumed", "published"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFact:
    """One figure, in the unit with which its quantity ends."""

    quantity: str
    value: float
    role: Role
    printed: str  # the number and unit of the source
    scope: str  # the cluster, job or machine of the figure
    source: str
    source_date: str
    note: str


def load_role_facts(
    path: Path,
    *,
    quantities: tuple[str, ...],
    units: Mapping[str, float],
    users: str,
    head: str = "quantity",
) -> tuple[RoleFact, ...]:
    """Read a table; a row without unit, role, scope, source or a number of at least 0 is an error,
    and so are two rows of one quantity that `users` (forecasts, bills) would use. `units` are
    factors to the unit of the quantity; `head` names its column."""
    found: list[RoleFact] = []
    for where, row in rows(path, (head, *COLUMNS[1:])):
        name = row[head]
        check_source(where, name, row)
        if name not in quantities:
            raise FactError(f"{where}: {shown(name)} is not one of {', '.join(quantities)}")
        if row["unit"] not in units:
            raise FactError(f"{where}: {name} has the unknown unit {shown(row['unit'])}")
        role = next((r for r in get_args(Role) if r == row["role"]), None)
        if role is None or not row["scope"]:
            raise FactError(
                f"{where}: {name} needs a scope, and one of {', '.join(get_args(Role))} as role"
            )
        if role == "assumed" and not row["note"].startswith("assumed"):
            raise FactError(f"{where}: {name} is assumed and its note does not say what")
        if role != "published" and any(f.quantity == name and f.role != "published" for f in found):
            raise FactError(f"{where}: {name} already has a value that {users} use")
        found.append(
            RoleFact(
                quantity=name,
                value=_number(where, row["value"]) * units[row["unit"]],
                role=role,
                printed=f"{row['value']} {row['unit']}",
                scope=row["scope"],
                source=row["source"],
                source_date=row["source_date"],
                note=row["note"],
            )
        )
    return tuple(found)


def used_of(facts: tuple[RoleFact, ...], quantity: str) -> RoleFact:
    """The row of this quantity that is used."""
    return next(f for f in facts if f.quantity == quantity and f.role != "published")


def published_of(facts: tuple[RoleFact, ...], quantity: str) -> tuple[RoleFact, ...]:
    """Every published row of this quantity."""
    return tuple(f for f in facts if f.quantity == quantity and f.role != "assumed")


def _number(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as e:
        raise FactError(f"{where}: {e}") from None
    if not (math.isfinite(value) and value >= 0):
        raise FactError(f"{where}: {text} is not a number of at least 0")
    return value
