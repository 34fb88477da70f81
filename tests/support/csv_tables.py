"""Tables of rows as CSV files, for tests of what reads them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path


def written_table(rows: Iterable[Mapping[str, object]], path: Path) -> Path:
    """The rows as a file; a column that a row lacks is blank in it."""
    kept = list(rows)
    header = list(dict.fromkeys(key for row in kept for key in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, header, restval="")
        writer.writeheader()
        writer.writerows(kept)
    return path
