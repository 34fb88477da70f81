"""Reader of tables of facts; errors name the file and the line.

Every fact has the source that prints it and the date of the source: YYYY, YYYY-MM,
YYYY-MM-DD, or the word 'undated' where the source has none.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

from core.errors import FactError, shown

UNDATED = "undated"
_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", re.ASCII)


def rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each row with its place ('file.csv:12'); the header must be exactly `columns`."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise FactError(f"{path.name}:1: the columns are not {','.join(columns)}")
        for row in reader:
            where = f"{path.name}:{reader.line_num}"
            if None in row or None in row.values():
                raise FactError(f"{where}: the row does not have {len(columns)} cells")
            yield where, {column: cell.strip() for column, cell in row.items()}


def check_source(where: str, what: str, row: dict[str, str]) -> None:
    """Refuse a fact without a source or a valid date."""
    if not row["source"]:
        raise FactError(f"{where}: {what} has no source")
    if not is_date(row["source_date"]):
        raise FactError(
            f"{where}: {what} has the source date {shown(row['source_date'])}, "
            f"which is not YYYY, YYYY-MM, YYYY-MM-DD or '{UNDATED}'"
        )


def is_date(text: str) -> bool:
    """Whether `text` is a source date in one of the allowed forms.

    >>> is_date("2026-08"), is_date("undated"), is_date("Aug 2026"), is_date("2026-13")
    (True, True, False, False)
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return text == UNDATED
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        dt.date(year, month, day)
    except ValueError:
        return False
    return year >= 2000
