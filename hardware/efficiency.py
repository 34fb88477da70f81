"""Efficiency profiles of software stacks: load the table, and write fitted values.

hardware/efficiency.csv names each value's basis (prior, or what it was fitted on), bounds, prior
and interval; `generic` has every quantity, a family only those that differ. hardware/stacks.csv
says which family a stack belongs to and how it shards by default.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

from core.errors import FactError, unknown_name
from core.machine.efficiency import Efficiency, from_values
from core.units import to_si

EFFICIENCY_CSV = Path(__file__).with_name("efficiency.csv")
STACKS_CSV = Path(__file__).with_name("stacks.csv")
GENERIC = "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """One software stack and its defaults."""

    name: str
    family: str
    dp_sharding: str  # its default strategy; '' for none
    shardings: tuple[str, ...]  # the strategies it supports; () for all
    recompute: str  # default recompute, one or several; '' for the least that fits
    gradient_dtype: str  # a core.scenario.GradientDtype; '' for the sharding strategy's
    attention: str  # 'best' kernel of the device, or 'flash2'
    async_tp_since: str  # YYYY[-MM], 'always' or '': tensor parallelism beside computation
    gradient_overlap_since: str  # reduction of gradients during backward: YYYY[-MM], 'always' or ''
    note: str  # its other defaults
    chunked_loss: str = ""  # 'always', 'fine-tuning' or '': tasks whose logits exist in pieces only
    software: str = ""  # what is built on it, if not itself (hardware/habits/built_on.csv)

    def chunks_loss(self, *, pretrains: bool) -> bool:
        """Whether it computes the loss in pieces unless asked not to."""
        return self.chunked_loss == "always" or (
            self.chunked_loss == "fine-tuning" and not pretrains
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the table, numbers in SI units.

    With `prior_sigma` 0 the value was set, not fitted. A family's `prior` of None means the generic
    value, and `prior_sigma` is then how far the family may differ from it.
    """

    stack: str
    quantity: str
    value: float
    low: float
    high: float
    p10: float | None  # of the posterior
    p90: float | None
    unit: str
    fits: str  # what it is fitted on: throughput, memory, intervals, or ''
    prior: float | None
    prior_sigma: float
    basis: str
    date: str
    note: str


NUMBERS = ("value", "low", "high", "p10", "p90", "prior", "prior_sigma")


def read_entries(path: Path = EFFICIENCY_CSV) -> list[Entry]:
    """The entries of the table. Raises `FactError` with the line of a bad row."""
    entries: dict[tuple[str, str], Entry] = {}
    with path.open(newline="") as file:
        for row in (reader := csv.DictReader(file)):
            entry = _entry(row, f"{path.name}:{reader.line_num}")
            key = (entry.stack, entry.quantity)
            if key in entries:
                raise FactError(f"{path.name}:{reader.line_num}: {key[0]} {key[1]} is given twice")
            entries[key] = entry
    return list(entries.values())


def _entry(row: dict[str, str], where: str) -> Entry:
    if not row["basis"] or not row["date"]:
        raise FactError(f"{where}: {row['quantity']} has no basis or date")
    try:
        scale = to_si(1.0, _unit(row["unit"]))
        number = {c: float(row[c]) * scale if row[c] else None for c in NUMBERS}
    except ValueError as e:
        raise FactError(f"{where}: {e}") from e
    value, low, high = number["value"], number["low"], number["high"]
    if value is None or low is None or high is None or not low <= value <= high:
        raise FactError(f"{where}: {row['quantity']} {row['value']} is outside its bounds")
    return Entry(
        value=value, low=low, high=high, p10=number["p10"], p90=number["p90"],
        prior=number["prior"], prior_sigma=number["prior_sigma"] or 0.0,
        **{c: row[c] for c in ("stack", "quantity", "unit", "fits", "basis", "date", "note")},
    )  # fmt: skip


def _unit(unit: str) -> str:
    return "fraction" if unit == "log ratio" else unit


def write_entries(entries: list[Entry], path: Path = EFFICIENCY_CSV) -> None:
    """Write the table back, four significant digits, in the order given."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Entry)], lineterminator="\n")
        writer.writeheader()
        for entry in entries:
            row = asdict(entry)
            scale = to_si(1.0, _unit(entry.unit))
            for name in NUMBERS:
                row[name] = "" if row[name] is None else f"{row[name] / scale:.4g}"
            row["prior_sigma"] = "" if entry.prior_sigma == 0 else row["prior_sigma"]
            writer.writerow(row)


def load_efficiencies(path: Path = EFFICIENCY_CSV) -> dict[str, Efficiency]:
    """Read the table: one complete `Efficiency` per family."""
    return profiles(read_entries(path))


def profiles(entries: list[Entry]) -> dict[str, Efficiency]:
    """One complete `Efficiency` per name in the table (a family or a stack): its own values, else
    those of its family, else the generic ones."""
    own: dict[str, dict[str, float]] = {GENERIC: {}}
    for entry in entries:
        own.setdefault(entry.stack, {})[entry.quantity] = entry.value
    family = {name: own.get(s.family, {}) for name, s in stacks().items()}
    return {
        name: from_values({**own[GENERIC], **family.get(name, {}), **values})
        for name, values in own.items()
    }


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
                attention=r["attention"],
                async_tp_since=r["async_tp_since"],
                gradient_overlap_since=r["gradient_overlap_since"],
                chunked_loss=r["chunked_loss"],
                note=r["note"],
            )
            for r in csv.DictReader(file)
        }


@cache
def _efficiencies() -> dict[str, Efficiency]:
    return load_efficiencies()


def stack_of(framework: str) -> Stack | None:
    """The profile of a framework's name; 'llama-factory/Unsloth+FA2' trains with unsloth, and
    'ms-swift/megatron' with the first stack of that family."""
    known = stacks()
    name = framework.strip().lower().replace("_", "-")
    first, trains = name.split("/")[0], name.split("/")[-1].split("+")[0]
    below = [k for k, s in known.items() if s.family == trains][:1] if first != trains else []
    for candidate in (name, trains, *below, first):
        if candidate in known:
            return known[candidate]
    prefixes = [k for k in known if k != GENERIC and name.startswith(k)]
    return known[max(prefixes, key=len)] if prefixes else None


def efficiency(stack: str, table: Mapping[str, Efficiency] | None = None) -> Efficiency:
    """The profile of a stack by its name; an unknown name is an error. `table`: profiles by family,
    in place of those of hardware/efficiency.csv."""
    if stack not in stacks():
        raise unknown_name("stack", stack, stacks())
    table = _efficiencies() if table is None else table
    return table.get(stack) or of_family(stacks()[stack].family, table)


def of_family(family: str, table: Mapping[str, Efficiency] | None = None) -> Efficiency:
    """The profile of a family of stacks; of one without its own, the generic one."""
    table = _efficiencies() if table is None else table
    return table.get(family) or table[GENERIC]
