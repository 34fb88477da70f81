"""Rows of a CSV text from outside, whose columns are counted, each name once."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from core.errors import shown
from hardware.outside import interrupt
from hardware.outside.json_text import OutsideError, twice

MOST_COLUMNS = 1_000


def csv_rows(text: str | Iterable[str], *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Each row with the number of its last line, the header first; `strict` refuses quotes that
    are not closed. OutsideError for what is no CSV, or has more columns than any file."""
    table = csv.reader(io.StringIO(text, newline="") if isinstance(text, str) else text,
                       strict=strict)  # fmt: skip
    while True:
        interrupt.check()
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as e:
            raise OutsideError(f"is not a CSV file: {e}, at line {table.line_num}") from None
        if len(cells) > MOST_COLUMNS:
            raise OutsideError(
                f"has {len(cells):,} cells at line {table.line_num}, more than {MOST_COLUMNS:,}"
            )
        yield table.line_num, cells


def check_header(header: Iterable[str]) -> None:
    """OutsideError for a column that is named twice; blank names are no names."""
    if name := twice(cell for cell in header if cell):
        raise OutsideError(f"has the column {shown(name)} twice")
