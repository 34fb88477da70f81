"""Read a price book from CSV, or from YAML with one flat table per row. Input is not trusted.

- kind: rate
  provider: aws
  accelerator: H100-80GB-SXM
  discount: 30%
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import yaml  # type: ignore[import-untyped, unused-ignore]

from app.scenario.yaml import MAX_BYTES, Document, decoded, is_nothing, line_of, read_bytes
from core.errors import ScenarioError, nearest, shown
from hardware.foreign_csv import table_of
from pricing.book.files import checked_name
from pricing.book.rows import COLUMNS, MAX_ROWS, PriceBook, read_rows

FILE = Document(noun="price book", depth=2, line="'- kind: rate'", forms="'- column: value'")
SUFFIXES = (".csv", ".yaml", ".yml")
MAX_VALUES = MAX_ROWS * 2 * len(COLUMNS)

Cells = list[tuple[int, dict[str, str]]]


def read_book_file(path: Path, *, name: str, today: date) -> PriceBook:
    """Read a whole price book; a `RuncastError` says what is wrong with the file."""
    return read_book(read_bytes(path), file_name=path.name, name=name, today=today)


def read_book(content: bytes, *, file_name: str, name: str, today: date) -> PriceBook:
    """Parse the bytes of a CSV or YAML file; a `RuncastError` says what is wrong."""
    checked_name(name)
    suffix = Path(file_name).suffix.lower()
    if suffix not in SUFFIXES:
        raise ScenarioError(f"{shown(file_name)} is not one of {', '.join(SUFFIXES)}.")
    cells = csv_cells(content, file_name) if suffix == ".csv" else yaml_cells(content)
    return PriceBook(name=name, added_on=today, rows=read_rows(cells))


def csv_cells(content: bytes, file_name: str) -> Cells:
    """Rows of a CSV file. It has the columns of every kind of row; unused ones are blank."""
    table = table_of(
        content, name=file_name, needs=("kind",), max_bytes=MAX_BYTES, max_rows=MAX_ROWS
    )
    for column in table.header:
        if column not in COLUMNS:
            guess = nearest(column, COLUMNS)
            hint = f" Did you mean {guess!r}?" if guess else ""
            raise ScenarioError(f"{shown(column)} is no column of a price book.{hint}")
    for row in table.rows:
        if row.width_reason:
            raise ScenarioError(f"Line {row.line}: {row.width_reason}")
    return [(row.line, row.cells) for row in table.rows]


def yaml_cells(content: bytes) -> Cells:
    """Rows of a YAML file, read as events: anchors and tags are refused, no object is built."""
    try:
        return _tables(decoded(content, FILE))
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        where = "" if mark is None else f" at line {mark.line + 1}"
        problem = getattr(e, "problem", None) or getattr(e, "reason", None) or "it cannot be read"
        raise ScenarioError(
            f"The price book is not YAML: {shown(str(problem))[1:-1]}{where}."
        ) from None


def _tables(text: str) -> Cells:
    found: Cells = []
    open_ends: list[type[yaml.Event]] = []  # ends the list, then the table in it
    column: str | None = None
    values = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = line_of(event)
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if (
            documents > 1
            or isinstance(event, yaml.AliasEvent)
            or getattr(event, "anchor", None) is not None
            or getattr(event, "tag", None) not in (None, "!")
        ):
            raise ScenarioError(
                f"Line {line} has an anchor, an alias, a tag or a second document, which are not "
                "read: write the values out."
            )
        if isinstance(event, yaml.CollectionStartEvent):
            is_list = isinstance(event, yaml.SequenceStartEvent)
            if len(open_ends) != (0 if is_list else 1):
                raise ScenarioError(f"Line {line} is not of the form {FILE.forms}.")
            open_ends.append(yaml.SequenceEndEvent if is_list else yaml.MappingEndEvent)
            if not is_list:
                found.append((line, {}))
        elif isinstance(event, yaml.CollectionEndEvent):
            open_ends.pop()
        elif isinstance(event, yaml.ScalarEvent):
            values += 1
            if len(found) > MAX_ROWS or values > MAX_VALUES:
                raise ScenarioError(f"A price book has at most {MAX_ROWS} rows.")
            if len(open_ends) == 0 and not event.value:  # an empty file
                continue
            if len(open_ends) != 2:
                raise ScenarioError(f"Line {line} is not of the form {FILE.forms}.")
            column = _taken(found[-1][1], column, event, line)
    return found


def _taken(
    row: dict[str, str], column: str | None, event: yaml.ScalarEvent, line: int
) -> str | None:
    """Handle one scalar: a column name is returned, a value is stored in its row."""
    if column is None:
        if event.value in row:
            raise ScenarioError(f"Line {line} gives {shown(event.value)} twice.")
        return str(event.value)
    row[column] = "" if is_nothing(event) else event.value
    return None
