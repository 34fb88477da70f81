"""A sweep as a YAML file: a scenario file whose fields may hold several values.

`field: value`, `field: [value, value]`, and for a field that is itself a list
`field: [[value, value], [value]]`. The file is read as app/scenario_file.py reads one: capped,
checked while it is read, and no object is ever built from it. Every value keeps its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped, unused-ignore]

from app.field_table import is_list
from app.scenario_file import MAX_BYTES
from core.errors import ScenarioError, nearest, shown
from core.scenario import LINK_VERSION, Scenario

MAX_DEPTH = 3  # the fields, their values, and the list that one value may be
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})

Text = str | list[str] | None  # None: the field is not given, so that it is at its default


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One value as it stands in the file."""

    text: Text
    line: int


def read_sweep_file(path: Path) -> dict[str, list[Written]]:
    """Field -> its values, in the order of the file; never more of it is read than the cap."""
    try:
        if not path.is_file():  # a pipe or device would block or never end
            raise ScenarioError(f"There is no file {shown(str(path))}.")
        with path.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as e:
        raise ScenarioError(f"{shown(str(path))} cannot be read: {e.strerror}.") from None
    except ValueError as e:
        if isinstance(e, ScenarioError):
            raise
        raise ScenarioError(f"{shown(str(path))} is not the path of a file.") from None
    return read_sweep(content)


def read_sweep(content: bytes) -> dict[str, list[Written]]:
    """Field -> its values; a `ScenarioError` names the line of what cannot be read.

    >>> [w.text for w in read_sweep(b"seq_len: [4k, 8k]")["seq_len"]]
    ['4k', '8k']
    """
    if len(content) > MAX_BYTES:
        raise ScenarioError(
            f"The sweep file is larger than {MAX_BYTES:,} bytes; one has a few hundred."
        )
    try:
        found = _fields(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ScenarioError("The sweep file is not text (UTF-8).") from None
    except yaml.YAMLError as e:
        raise ScenarioError(_not_yaml(e)) from None
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
    events = _checked(text)
    found: dict[str, list[Written]] = {}
    for event in events:
        if not isinstance(event, yaml.ScalarEvent):  # the ends of the table and the document
            continue
        name, line = event.value, event.start_mark.line + 1
        if name in found:
            raise ScenarioError(f"Line {line} of the sweep file gives {shown(name)} again.")
        field = Scenario.model_fields.get(name)
        if field is None and name != "v":
            guess = nearest(name, Scenario.model_fields)
            hint = f" Did you mean {guess!r}?" if guess else ""
            raise ScenarioError(
                f"Line {line} of the sweep file: {shown(name)} is not a field of a scenario.{hint}"
            )
        found[name] = _values(name, events, lists=field is not None and is_list(field))
    return found


def _values(name: str, events: Iterator[yaml.Event], *, lists: bool) -> list[Written]:
    """The values of one field: of a field that is a list, a list of lists holds several."""
    first = next(events)
    if isinstance(first, yaml.ScalarEvent):
        return [_written(first)]
    line = first.start_mark.line + 1
    items: list[Written] = []
    flat: list[str] = []
    nested = False
    for event in events:
        if isinstance(event, yaml.SequenceEndEvent):
            break
        if isinstance(event, yaml.ScalarEvent):
            items.append(_written(event))
            flat.append(event.value)
            continue
        if not lists:
            raise ScenarioError(
                f"Line {event.start_mark.line + 1} of the sweep file gives {name} a list of lists; "
                f"one value of it is no list: {name}: [value, value]."
            )
        nested = True
        texts = []
        for inner in events:
            if isinstance(inner, yaml.SequenceEndEvent):
                break
            texts.append(inner.value)
        items.append(Written(text=texts, line=event.start_mark.line + 1))
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
    """An empty value is a field that is not given, unless it was written as ''."""
    empty = event.style is None and event.value in _NOTHING
    return Written(text=None if empty else event.value, line=event.start_mark.line + 1)


def _checked(text: str) -> Iterator[yaml.Event]:
    """Scalars and lists of a table of lists of lists; an error at the first thing that is more."""
    depth = documents = 0
    expects_name = True
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ScenarioError(
                f"Line {line} of the sweep file has an anchor or alias (& or *), which is not "
                "read: write the value out."
            )
        if getattr(event, "tag", None) not in (None, "!"):
            raise ScenarioError(
                f"Line {line} of the sweep file has the tag {shown(event.tag)}, which is not read: "
                "leave it out."
            )
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise ScenarioError(f"A second document starts at line {line}: give one sweep.")
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            is_table = isinstance(event, yaml.MappingStartEvent)
            if is_table is not (depth == 1) or depth > MAX_DEPTH or (depth == 2 and expects_name):
                raise ScenarioError(
                    f"Line {line} of the sweep file is not of the form 'field: value', 'field: "
                    "[value, value]' or 'field: [[value, value], [value]]'."
                )
            if not is_table:
                yield event
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            expects_name = expects_name or depth == 1
            if depth:
                yield event
        elif isinstance(event, yaml.ScalarEvent):
            if depth == 0:
                if not event.value:
                    continue
                raise ScenarioError(
                    f"The sweep file is the text {shown(event.value)}, not lines of the form "
                    "'field: [value, value]'."
                )
            if depth == 1:
                expects_name = not expects_name
            yield event


def _not_yaml(e: yaml.YAMLError) -> str:
    """What PyYAML says of text that is no YAML, in one line."""
    mark = getattr(e, "problem_mark", None)
    where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
    problem = getattr(e, "problem", None) or getattr(e, "reason", None) or "it cannot be read"
    return f"The sweep file is not YAML: {shown(str(problem))[1:-1]}{where}."
