"""A sweep as a YAML file: a scenario file whose fields may hold several values.

`field: value`, `field: [value, value]`, and for a field that is itself a list
`field: [[value, value], [value]]`. app/scenario/yaml.py reads it. Every value keeps its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped, unused-ignore]

from app.scenario.fields import is_list
from app.scenario.yaml import Document, decoded, events, is_nothing, line_of, read_bytes
from core.errors import ScenarioError, nearest, shown
from core.scenario import LINK_VERSION, Scenario

FILE = Document(
    noun="sweep",
    depth=3,
    line="'field: [value, value]'",
    forms="'field: value', 'field: [value, value]' or 'field: [[value, value], [value]]'",
)

Text = str | list[str] | None  # None: the field is not given and has its default


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One value as written in the file."""

    text: Text
    line: int


def read_sweep_file(path: Path) -> dict[str, list[Written]]:
    """The values of each field, in the order of the file; reads no more than the size cap."""
    return read_sweep(read_bytes(path))


def read_sweep(content: bytes) -> dict[str, list[Written]]:
    """The values of each field; a `ScenarioError` names the line of an error.

    >>> [w.text for w in read_sweep(b"seq_len: [4k, 8k]")["seq_len"]]
    ['4k', '8k']
    """
    found = _fields(decoded(content, FILE))
    version = found.pop("v", [Written(text=str(LINK_VERSION), line=1)])
    if [w.text for w in version] != [str(LINK_VERSION)]:
        raise ScenarioError(
            f"Line {version[0].line} of the sweep file says v={shown(version[0].text)}; this "
            f"version reads v={LINK_VERSION}."
        )
    if not found:
        raise ScenarioError("The sweep file gives no field: a line is 'field: [value, value]'.")
    return found


def _fields(text: str) -> dict[str, list[Written]]:
    stream = events(text, FILE)
    found: dict[str, list[Written]] = {}
    for event in stream:
        if not isinstance(event, yaml.ScalarEvent):  # end of the mapping or of the document
            continue
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
        found[name] = _values(name, stream, lists=field is not None and is_list(field))
    return found


def _values(name: str, stream: Iterator[yaml.Event], *, lists: bool) -> list[Written]:
    """The values of one field. For a list field, a list of lists holds several values."""
    first = next(stream)
    if isinstance(first, yaml.ScalarEvent):
        return [_written(first)]
    line = line_of(first)
    items: list[Written] = []
    flat: list[str] = []
    nested = False
    for event in stream:
        if isinstance(event, yaml.SequenceEndEvent):
            break
        if isinstance(event, yaml.ScalarEvent):
            items.append(_written(event))
            flat.append(event.value)
            continue
        if not lists:
            raise ScenarioError(
                f"Line {line_of(event)} of the sweep file gives {name} a list of lists; "
                f"one value of it is no list: {name}: [value, value]."
            )
        nested = True
        texts = []
        for inner in stream:
            if isinstance(inner, yaml.SequenceEndEvent):
                break
            texts.append(inner.value)
        items.append(Written(text=texts, line=line_of(event)))
    if not items:
        raise ScenarioError(
            f"Line {line} of the sweep file gives {name} an empty list, which makes no cell: leave "
            "the field out for its default, or give a value."
        )
    if lists and not nested:  # one value, as in a scenario file
        return [Written(text=flat, line=line)]
    for item in items:
        if lists and isinstance(item.text, str):
            raise ScenarioError(
                f"Line {item.line} of the sweep file mixes values and lists in {name}: each value "
                f"of it is a list, {name}: [[A], [A, B]]."
            )
    return items


def _written(event: yaml.ScalarEvent) -> Written:
    return Written(text=None if is_nothing(event) else event.value, line=line_of(event))
