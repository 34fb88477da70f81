"""A sweep as a YAML file: a scenario file whose fields may hold several values.

`field: value`, `field: [value, value]`, and for a field that is itself a list
`field: [[value, value], [value]]`. app/scenario/yaml.py reads it. Every value keeps its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped, unused-ignore]

from app.scenario.fields import is_list
from app.scenario.yaml import Document, fields, is_nothing, line_of, read_bytes
from core.errors import ScenarioError, nearest, shown
from core.scenario import LINK_VERSION, Scenario

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
    found = _fields(content)
    version = found.pop("v", [Written(text=str(LINK_VERSION), line=1)])
    if [w.text for w in version] != [str(LINK_VERSION)]:
        raise ScenarioError(
            f"Line {version[0].line} of the sweep file says v={shown(version[0].text)}; this "
            f"version reads v={LINK_VERSION}."
        )
    if not found:
        raise ScenarioError("The sweep file gives no field: a line is 'field: [value, value]'.")
    return found


def _fields(content: bytes) -> dict[str, list[Written]]:
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
        found[name] = _values(name, value, lists=field is not None and is_list(field))
    return found


def _values(name: str, value: yaml.Node, *, lists: bool) -> list[Written]:
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
