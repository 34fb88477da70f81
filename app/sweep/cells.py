"""A sweep: the cross product of lists of scenario values, one cell each.

The first field of the file varies slowest, as in nested loops, and a cell's number is its position
in that order. Cells are built only when they are needed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.forecast.machines import CUSTOM
from app.forecast.resolve import resolve_strict
from app.scenario import fields as scenario_fields
from app.sweep.file import Written
from core.errors import ScenarioError, shown, unknown_name
from core.scenario import Scenario
from pricing.offers import snapshot_ids

MAX_CELLS = 100_000  # default of --max-cells
NAMES = ("gpu", "cloud", "model", "stack")  # fields whose values name facts


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The fields with their canonical values, in the order of the file. A field with one value has
    it in every cell."""

    fields: Mapping[str, tuple[Any, ...]]

    @property
    def varying(self) -> dict[str, tuple[Any, ...]]:
        return {name: values for name, values in self.fields.items() if len(values) > 1}

    def __len__(self) -> int:
        return math.prod(len(values) for values in self.fields.values())

    def values(self, number: int) -> dict[str, Any]:
        """The values of the fields in one cell."""
        found: dict[str, Any] = {}
        for name, values in reversed(list(self.fields.items())):
            number, place = divmod(number, len(values))
            found[name] = values[place]
        return {name: found[name] for name in self.fields}

    def scenario(self, number: int) -> Scenario:
        """The scenario of one cell."""
        values = self.values(number)
        return Scenario.parse({name: v for name, v in values.items() if v is not None})

    def written(self) -> dict[str, list[str | None]]:
        """Every value as the exact text to type; None if the field is not given."""
        return {
            name: [None if v is None else scenario_fields.written(v) for v in values]
            for name, values in self.fields.items()
        }

    def content_id(self) -> str:
        """sha256 of the fields and values, regardless of the file's layout and comments."""
        return hashlib.sha256(json.dumps(list(self.written().items())).encode()).hexdigest()

    def count(self) -> str:
        """The number of cells, such as '12 cells'."""
        return f"{len(self):,} cell" + ("s" if len(self) > 1 else "")

    def shape(self) -> str:
        """The shape, such as '12 cells: 3 seq_len x 4 num_gpus'."""
        factors = " x ".join(f"{len(v):,} {name}" for name, v in self.varying.items())
        return f"{self.count()}: {factors}" if factors else self.count()

    def described(self, number: int) -> str:
        """The name of a cell, such as 'cell 17 (seq_len=8192, gpu=H100-80GB-SXM)'."""
        values = self.values(number)
        text = ", ".join(f"{name}={scenario_fields.written(values[name])}" for name in self.varying)
        return f"cell {number:,} ({text})" if text else f"cell {number:,}"


def sweep_of(written: Mapping[str, Sequence[Written]], *, max_cells: int = MAX_CELLS) -> Sweep:
    """The sweep that a file describes; the first invalid value raises an error."""
    count = math.prod(len(values) for values in written.values())
    if count > max_cells:
        factors = " x ".join(f"{len(v):,} {n}" for n, v in written.items() if len(v) > 1)
        raise ScenarioError(
            f"The sweep file makes {count:,} cells ({factors}); the limit is {max_cells:,} "
            "(--max-cells): shorten a list, or cut the sweep in several."
        )
    return Sweep(fields={name: _values(name, values) for name, values in written.items()})


def _values(name: str, written: Sequence[Written]) -> tuple[Any, ...]:
    found: dict[Any, Written] = {}
    for one in written:
        try:
            value = _value(name, one)
        except ScenarioError as e:
            raise ScenarioError(f"Line {one.line} of the sweep file: {e}") from None
        if value in found:
            before = found[value]
            raise ScenarioError(
                f"Line {one.line} of the sweep file gives {name} the value {_shown(one)}, which is "
                f"the same as {_shown(before)} at line {before.line}: its cells would be there "
                "twice."
            )
        found[value] = one
    return tuple(found)


def _shown(written: Written) -> str:
    if written.text is None:
        return "null (the default)"
    parts = written.text
    return shown(parts if isinstance(parts, str) else f"[{', '.join(parts)}]")


def _value(name: str, written: Written) -> Any:
    """One value as the scenario holds it, with canonical names; a missing one is the default."""
    default = Scenario.model_fields[name].default
    if written.text is None:
        return default
    value = getattr(Scenario.parse({name: written.text}), name)
    if name == "prices" and value and value not in snapshot_ids():
        raise unknown_name("price snapshot", value, snapshot_ids())
    if name not in NAMES:
        return value
    if isinstance(value, tuple):
        return tuple(_canonical(name, one) for one in value)
    return _canonical(name, value)


def _canonical(name: str, given: str) -> str:
    """The name that the facts use; custom machines and models need more fields than this one."""
    if given.strip().lower() == CUSTOM:
        return CUSTOM
    found = getattr(resolve_strict(Scenario.parse({name: given})), name)
    return str(found[0] if isinstance(found, tuple) else found)
