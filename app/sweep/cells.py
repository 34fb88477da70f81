"""A sweep: the cross product of the lists of scenario values in a YAML file, one cell each.

The file is a scenario file whose fields may hold several values: `field: value`,
`field: [value, value]`, and for a field that is itself a list `field: [[value, value], [value]]`.

The first field of the file varies slowest, as in nested loops, and a cell's number is its position
in that order. Cells are built only when they are needed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from app.forecast.machines import CUSTOM
from app.forecast.resolve import resolve_strict
from app.scenario import fields as scenario_fields
from app.scenario.fields import is_list
from app.scenario.yaml import Document, fields, is_nothing, line_of, read_bytes
from core.errors import ScenarioError, nearest, shown, unknown_name
from core.scenario import LINK_VERSION, Scenario
from pricing.offers import snapshot_ids

MAX_CELLS = 100_000  # default of --max-cells
NAMES = ("gpu", "cloud", "model", "stack")  # fields whose values name facts
FILE = Document(
    noun="sweep",
    depth=3,
    line="'field: [value, value]'",
    forms="'field: value', 'field: [value, value]' or 'field: [[value, value], [value]]'",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One value as written in the file."""

    text: str | list[str] | None  # None: the field is not given and has its default
    line: int


def read_sweep_file(path: Path) -> dict[str, list[Written]]:
    """The values of each field, in the order of the file; reads no more than the size cap."""
    return read_sweep(read_bytes(path))


def read_sweep(content: bytes) -> dict[str, list[Written]]:
    """The values of each field; a `ScenarioError` names the line of an error.

    >>> [w.text for w in read_sweep(b"seq_len: [4k, 8k]")["seq_len"]]
    ['4k', '8k']
    """
    found = _written_fields(content)
    version = found.pop("v", [Written(text=str(LINK_VERSION), line=1)])
    if [w.text for w in version] != [str(LINK_VERSION)]:
        raise ScenarioError(
            f"Line {version[0].line} of the sweep file says v={shown(version[0].text)}; this "
            f"version reads v={LINK_VERSION}."
        )
    if not found:
        raise ScenarioError("The sweep file gives no field: a line is 'field: [value, value]'.")
    return found


def _written_fields(content: bytes) -> dict[str, list[Written]]:
    found: dict[str, list[Written]] = {}
    for event, value in fields(content, FILE):
        name, line = event.value, line_of(event)
        if name in found:
            raise ScenarioError(f"Line {line} of the sweep file gives {shown(name)} again.")
        field = Scenario.model_fields.get(name)
        if field is None and name != "v":
            guess = nearest(name, Scenario.model_fields)
            hint = f" Did you mean {guess!r}?" if guess else ""
            raise ScenarioError(
                f"Line {line} of the sweep file: {shown(name)} is not a field of a scenario.{hint}"
            )
        found[name] = _written_values(name, value, lists=field is not None and is_list(field))
    return found


def _written_values(name: str, value: yaml.Node, *, lists: bool) -> list[Written]:
    """The values of one field. For a list field, a list of lists holds several values."""
    if isinstance(value, yaml.ScalarNode):
        return [_written(value)]
    if not value.value:
        raise ScenarioError(
            f"Line {line_of(value)} of the sweep file gives {name} an empty list, which makes no "
            "cell: leave the field out for its default, or give a value."
        )
    nested = [item for item in value.value if isinstance(item, yaml.SequenceNode)]
    if nested and not lists:
        raise ScenarioError(
            f"Line {line_of(nested[0])} of the sweep file gives {name} a list of lists; "
            f"one value of it is no list: {name}: [value, value]."
        )
    if lists and not nested:  # one value, as in a scenario file
        return [_written(value)]
    items = [_written(item) for item in value.value]
    for item in items:
        if lists and isinstance(item.text, str):
            raise ScenarioError(
                f"Line {item.line} of the sweep file mixes values and lists in {name}: each value "
                f"of it is a list, {name}: [[A], [A, B]]."
            )
    return items


def _written(value: yaml.Node) -> Written:
    if isinstance(value, yaml.SequenceNode):
        return Written(text=[item.value for item in value.value], line=line_of(value))
    return Written(text=None if is_nothing(value) else value.value, line=line_of(value))


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
