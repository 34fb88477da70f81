"""Bounded reader of CSV files from outside, which are hostile until parsed.

A file that is not such a table is a `RunsError` of one sentence; the caller checks its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.errors import RunsError, nearest, shown
from hardware.outside.csv_text import check_header, csv_rows
from hardware.outside.json_text import OutsideError

MAX_BYTES = 20_000_000
MAX_ROWS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the file: its line, its cells by column, and a wrong number of cells."""

    line: int
    cells: dict[str, str]
    width_reason: str  # '' where it has as many cells as the header

    def cell(self, column: str) -> str:
        """A cell without surrounding blanks; '' where the file has no such column."""
        return self.cells.get(column, "").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTable:
    """Header and rows, in file order."""

    header: tuple[str, ...]
    rows: tuple[Row, ...]


def read_file(path: Path) -> bytes:
    """The content of a file, at most one byte more than the bound."""
    name = shown(str(path))
    if not path.is_file():  # a pipe or device would block or never end
        raise RunsError(f"{name} is not a file.")
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as e:
        raise RunsError(f"{name} cannot be read: {e.strerror}.") from None


def table_of(
    content: bytes,
    *,
    name: str,
    needs: tuple[str, ...],
    max_bytes: int = MAX_BYTES,
    max_rows: int = MAX_ROWS,
) -> ForeignTable:
    """Parse a table that must have the columns `needs`; `name` is what a sentence calls it."""
    called = shown(name)
    if len(content) > max_bytes:
        raise RunsError(f"{called} is larger than {max_bytes // 10**6} MB.")
    lines = _lines(content, called, max_rows)
    header = [cell.strip() for cell in lines[0][1]] if lines else []
    for column in needs:
        if column not in header:
            guess = nearest(column, header[:100])
            hint = f" Did you mean its column {shown(guess)}?" if guess else ""
            raise RunsError(f"{called} has no column {column!r}.{hint}")
    try:
        check_header(header)
    except OutsideError as e:
        raise RunsError(f"{called} {e.clause}.") from None
    if len(lines) == 1:
        raise RunsError(f"{called} has a header and no rows.")
    rows = (
        Row(
            line=line,
            cells=dict(zip(header, cells, strict=False)),
            width_reason=_width_reason(len(header), len(cells)),
        )
        for line, cells in lines[1:]
    )
    return ForeignTable(header=tuple(header), rows=tuple(rows))


def _lines(content: bytes, called: str, max_rows: int) -> list[tuple[int, list[str]]]:
    """The lines that are not blank, each with its number."""
    lines: list[tuple[int, list[str]]] = []
    before = 0
    try:
        for line, cells in csv_rows(content.decode("utf-8-sig"), strict=False):
            if any(cells):
                lines.append((before + 1, cells))  # where it starts: a cell may hold line breaks
            before = line
            if len(lines) > max_rows + 1:
                raise RunsError(f"{called} has more than {max_rows:,} rows.")
    except UnicodeDecodeError:
        raise RunsError(f"{called} is not a text file in UTF-8.") from None
    except OutsideError as e:
        raise RunsError(f"{called} {e.clause}.") from None
    return lines


def _width_reason(columns: int, cells: int) -> str:
    if columns == cells:
        return ""
    return f"The row has {cells} cells where the header has {columns}."
