"""Publish a price snapshot: an immutable file named by its content, then a pointer to it.

Both are written under temporary names and renamed, so a reader sees the old snapshot or the new
one, never half of one, even when the writer is killed or the disk is full.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arro3.core import Array, DataType, Table
from arro3.io import write_parquet

from core.errors import FactError
from pricing.disk import write_atomically
from pricing.offers import COLUMNS, DIGEST, MAX_BYTES, MAX_ROWS, Row, content_id, read_rows


def parquet(rows: Sequence[Row]) -> bytes:
    """The parquet file of these rows, in canonical order."""
    arrow = {str: DataType.string(), int: DataType.int64(), float: DataType.float64()}
    columns = zip(*sorted(rows, key=repr), strict=True)
    arrays: dict[str, Any] = {
        name: Array(column, type=arrow[kind])
        for (name, kind), column in zip(COLUMNS.items(), columns, strict=True)
    }
    out = io.BytesIO()
    write_parquet(Table.from_pydict(arrays), out, compression="zstd(1)")
    return out.getvalue()


def write_snapshot(rows: Sequence[Row], folder: Path) -> str:
    """Write the snapshot of these rows unless it exists and is intact, and return its id."""
    if not rows or len(rows) > MAX_ROWS:
        raise FactError(f"{len(rows)} rows are no price snapshot: it has 1 to {MAX_ROWS}.")
    snapshot_id = content_id(rows)
    path = folder / f"{snapshot_id}.parquet"
    if not _is_whole(path):
        data = parquet(rows)
        if len(data) > MAX_BYTES:
            raise FactError(f"The price snapshot has {len(data)} bytes, more than {MAX_BYTES}.")
        digest = hashlib.sha256(data).hexdigest()
        write_atomically(path.with_suffix(DIGEST), f"{digest}\n".encode("ascii"))
        write_atomically(path, data)
    return snapshot_id


def _is_whole(path: Path) -> bool:
    """Whether a snapshot exists and matches its name: a damaged one is written again."""
    if not path.is_file():
        return False
    try:
        read_rows(path)
    except (FactError, OSError):
        return False
    return True


def make_current(snapshot_id: str, folder: Path) -> None:
    """Make a written snapshot the current one."""
    write_atomically(folder / "current", f"{snapshot_id}\n".encode("ascii"))
