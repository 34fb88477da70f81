"""A table in a YAML file that somebody gives us, read as a stream of checked events.

Foreign text is hostile until parsed: its size is capped before it is read, its structure is
checked while it is read, and no object is ever built from it. Scalars stay the text that was
written, so that `no` or 12:30 mean nothing special.
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
    """What a file may hold, and what its refusals call it."""

    noun: str  # scenario, sweep: 'the scenario file'
    depth: int  # 2: fields and the list that one may hold; 3: a list of such lists
    line: str  # the form of one line, for text that has none
    forms: str  # every form that is read
    max_values: int | None = None


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """The content of a file, never more of it than one byte above the cap."""
    try:
        if not path.is_file():  # a pipe or device would block or never end
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
    """Content within the cap as text."""
    size = len(content) if isinstance(content, bytes) else len(content.encode(errors="replace"))
    if size > MAX_BYTES:
        raise ScenarioError(
            f"The {document.noun} file is larger than {MAX_BYTES:,} bytes; one has a few hundred."
        )
    try:
        return content.decode("utf-8-sig") if isinstance(content, bytes) else content
    except UnicodeDecodeError:
        raise ScenarioError(f"The {document.noun} file is not text (UTF-8).") from None


def events(text: str, document: Document) -> Iterator[yaml.Event]:
    """Names, values, and where their lists start and end; an error at the first thing that is
    more than the document allows."""
    try:
        yield from _checked(text, document)
    except yaml.YAMLError as e:
        raise ScenarioError(_not_yaml(e, document)) from None


def is_nothing(event: yaml.ScalarEvent) -> bool:
    """An empty value is a field that is not given, unless it was written as ''."""
    return event.style is None and event.value in _NOTHING


def line_of(event: yaml.Event) -> int:
    """The line on which an event starts, as an editor counts."""
    return int(event.start_mark.line) + 1


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
    """What PyYAML says of text that is no YAML, in one line."""
    mark = getattr(e, "problem_mark", None)
    where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
    problem = getattr(e, "problem", None) or getattr(e, "reason", None) or "it cannot be read"
    return f"The {document.noun} file is not YAML: {shown(str(problem))[1:-1]}{where}."
