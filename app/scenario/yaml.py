"""A table in a user's YAML file, read as a stream of checked events.

Foreign text is untrusted until parsed: its size is capped before it is read, its structure is
checked while it is read, and no object is ever built from it. Scalars keep the text as written, so
that `no` or 12:30 have no special meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml  # type: ignore[import-untyped, unused-ignore]

from core.errors import ScenarioError, shown

MAX_BYTES = 65_536
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a file may hold, and the words its error messages use."""

    noun: str  # scenario or sweep, as in 'the scenario file'
    depth: int  # 2: fields, each of which may hold a list; 3: lists of such lists
    line: str  # the form of one line, shown if the text has no such line
    forms: str  # every accepted form
    max_values: int | None = None


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """The content of a file; at most one byte more than the cap is read."""
    try:
        if not path.is_file():  # a pipe or device could block or never end
            raise ScenarioError(f"There is no file {shown(str(path))}.")
        with path.open("rb") as opened:
            return opened.read(most + 1)
    except OSError as e:
        raise ScenarioError(f"{shown(str(path))} cannot be read: {e.strerror}.") from None
    except ValueError as e:
        if isinstance(e, ScenarioError):
            raise
        raise ScenarioError(f"{shown(str(path))} is not the path of a file.") from None


def decoded(content: str | bytes, document: Document) -> str:
    """Decode content within the cap as text."""
    size = len(content) if isinstance(content, bytes) else len(content.encode(errors="replace"))
    if size > MAX_BYTES:
        raise ScenarioError(
            f"The {document.noun} file is larger than {MAX_BYTES:,} bytes; one has a few hundred."
        )
    try:
        return content.decode("utf-8-sig") if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        raise ScenarioError(f"The {document.noun} file is not text (UTF-8).") from None


def fields(
    content: str | bytes, document: Document
) -> Iterator[tuple[yaml.ScalarEvent, yaml.Node]]:
    """Each name with its value: a scalar, or a sequence of values. Raises an error at the first
    thing that the document does not allow."""
    stream = _checked(decoded(content, document), document)
    try:
        for name in stream:
            yield name, _node(next(stream), stream)
    except yaml.YAMLError as e:
        raise ScenarioError(_not_yaml(e, document)) from None


def _node(event: yaml.Event, stream: Iterator[yaml.Event]) -> yaml.Node:
    """The value that begins with an event; its scalars keep the text as written."""
    if isinstance(event, yaml.ScalarEvent):
        return yaml.ScalarNode(None, event.value, event.start_mark, style=event.style)
    found = yaml.SequenceNode(None, [], event.start_mark)
    while not isinstance(inner := next(stream), yaml.SequenceEndEvent):
        found.value.append(_node(inner, stream))
    return found


def is_nothing(scalar: yaml.ScalarEvent | yaml.ScalarNode) -> bool:
    """Whether a value is empty, which means not given, unless it was written as ''."""
    return scalar.style is None and scalar.value in _NOTHING


def line_of(part: yaml.Event | yaml.Node) -> int:
    """The line number on which a part of the file starts, counted as in an editor."""
    return int(part.start_mark.line) + 1


def _checked(text: str, document: Document) -> Iterator[yaml.Event]:
    file = f"the {document.noun} file"
    depth = documents = values = 0
    expects_name = True
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        where = f"Line {line_of(event)} of {file}"
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise ScenarioError(
                f"{where} has an anchor or alias (& or *), which is not read: write the value out."
            )
        if getattr(event, "tag", None) not in (None, "!"):
            raise ScenarioError(
                f"{where} has the tag {shown(event.tag)}, which is not read: leave it out."
            )
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise ScenarioError(
                    f"A second document starts at line {line_of(event)}: give one {document.noun}."
                )
            continue
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            is_table = isinstance(event, yaml.MappingStartEvent)
            misplaced = is_table is not (depth == 1) or (depth == 2 and expects_name)
            if misplaced or depth > document.depth:
                raise ScenarioError(f"{where} is not of the form {document.forms}.")
            if is_table:
                continue
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            expects_name = expects_name or depth == 1
            if not depth:
                continue
        elif isinstance(event, yaml.ScalarEvent):
            if depth == 0:
                if not event.value:  # an empty file
                    continue
                raise ScenarioError(
                    f"T{file[1:]} is the text {shown(event.value)}, not lines of the form "
                    f"{document.line}."
                )
            if depth == 1:
                expects_name = not expects_name
        else:
            continue
        values += 1
        if document.max_values is not None and values > document.max_values:
            raise ScenarioError(f"T{file[1:]} has more than {document.max_values:,} values.")
        yield event


def _not_yaml(e: yaml.YAMLError, document: Document) -> str:
    """PyYAML's message about invalid YAML, on one line."""
    mark = getattr(e, "problem_mark", None)
    where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
    problem = getattr(e, "problem", None) or getattr(e, "reason", None) or "it cannot be read"
    return f"The {document.noun} file is not YAML: {shown(str(problem))[1:-1]}{where}."
