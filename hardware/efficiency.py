"""Load the fractions of a physical rate that software reaches, by stack.

hardware/efficiency.csv names each value's basis (prior, or what it was fitted on) and bounds;
`generic` holds every quantity, a family only what differs. hardware/stacks.csv says which
family a stack belongs to and how it shards by default.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.efficiency import Efficiency, from_values
from core.errors import FactError, unknown_name
from core.units import to_si

EFFICIENCY_CSV = Path(__file__).with_name("efficiency.csv")
STACKS_CSV = Path(__file__).with_name("stacks.csv")
GENERIC = "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One software stack: its habits."""

    name: str
    family: str
    dp_sharding: str  # its usual strategy; '' for none in particular
    shardings: tuple[str, ...]  # what it can do; () for all
    recompute: str  # of its recipes, one or several; '' for the least that fits
    gradient_dtype: str  # a core.scenario.GradientDtype; '' for the sharding strategy's
    note: str  # what else it does by default


def _value(row: dict[str, str], where: str) -> float:
    unit = "fraction" if row["unit"] == "log ratio" else row["unit"]
    if not row["basis"] or not row["date"]:
        raise FactError(f"{where}: {row['quantity']} has no basis or date")
    try:
        value, low, high = (to_si(float(row[c]), unit) for c in ("value", "low", "high"))
    except ValueError as e:
        raise FactError(f"{where}: {e}") from e
    if not low <= value <= high:
        raise FactError(f"{where}: {row['quantity']} {row['value']} is outside its bounds")
    return value


def load_efficiencies(path: Path = EFFICIENCY_CSV) -> dict[str, Efficiency]:
    """Read the table: one complete `Efficiency` per family."""
    own: dict[str, dict[str, float]] = {}
    with path.open(newline="") as file:
        for row in (reader := csv.DictReader(file)):
            where = f"{path.name}:{reader.line_num}"
            family = own.setdefault(row["stack"], {})
            if row["quantity"] in family:
                raise FactError(f"{where}: {row['stack']} {row['quantity']} is given twice")
            family[row["quantity"]] = _value(row, where)
    if GENERIC not in own:
        raise FactError(f"{path.name} lacks the stack {GENERIC!r}")
    return {family: from_values({**own[GENERIC], **values}) for family, values in own.items()}


@cache
def stacks() -> dict[str, Stack]:
    """Every stack that has a profile, by name."""
    with STACKS_CSV.open(newline="") as file:
        return {
            r["stack"]: Stack(
                name=r["stack"],
                family=r["family"],
                dp_sharding=r["dp_sharding"],
                shardings=tuple(r["shardings"].split()),
                recompute=r["recompute"],
                gradient_dtype=r["gradient_dtype"],
                note=r["note"],
            )
            for r in csv.DictReader(file)
        }


@cache
def _efficiencies() -> dict[str, Efficiency]:
    return load_efficiencies()


def stack_of(framework: str) -> Stack | None:
    """The profile of a framework's name; 'llama-factory/Unsloth+FA2' is llama-factory."""
    known = stacks()
    name = framework.strip().lower().replace("_", "-")
    for candidate in (name, name.split("/")[0]):
        if candidate in known:
            return known[candidate]
    prefixes = [k for k in known if k != GENERIC and name.startswith(k)]
    return known[max(prefixes, key=len)] if prefixes else None


def efficiency(stack: str) -> Efficiency:
    """The profile of a stack by its name; an unknown one is never guessed."""
    if stack not in stacks():
        raise unknown_name("stack", stack, stacks())
    table = _efficiencies()
    return table.get(stacks()[stack].family, table[GENERIC])
