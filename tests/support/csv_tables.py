"""Tables of rows as CSV files, for tests of what reads them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from core.errors import FactError


def written_table(rows: Iterable[Mapping[str, object]], path: Path) -> Path:
    """The rows as a file; a column that a row lacks is blank in it."""
    kept = list(rows)
    header = list(dict.fromkeys(key for row in kept for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, header, restval="")
        writer.writeheader()
        writer.writerows(kept)
    return path


def refusal(load: Callable[[Path], object], path: Path, text: str) -> str:
    """What the loader of a table of facts says of one with this text."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FactError) as e:
        load(path)
    return str(e.value)
