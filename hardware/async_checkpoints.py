"""Stacks that can save a checkpoint behind training: hardware/async_checkpoints.csv.

A stack without a row stops training until the whole checkpoint is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.errors import FactError
from hardware.efficiency import stacks
from hardware.tables import check_source, is_date, rows

ASYNC_CSV = Path(__file__).with_name("async_checkpoints.csv")
_COLUMNS = ("stack", "since", "blocked_s", "blocked_source", "source", "source_date", "note")
ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncCheckpoint:
    """Since when a stack saves behind training, and how long it still stops."""

    stack: str
    since: str  # YYYY-MM, 'always', or '' for never
    blocked_s: float  # besides the copy of the states to the host
    blocked_source: str
    source: str


NEVER = AsyncCheckpoint(stack="", since="", blocked_s=0.0, blocked_source="", source="")


def load_async_checkpoints(path: Path = ASYNC_CSV) -> dict[str, AsyncCheckpoint]:
    """Read the table by stack; an unknown stack, a bad date or no source is an error."""
    found: dict[str, AsyncCheckpoint] = {}
    for where, row in rows(path, _COLUMNS):
        name = row["stack"]
        check_source(where, name, row)
        if name not in stacks() or name in found:
            raise FactError(f"{where}: {name!r} is no stack of hardware/stacks.csv, or given twice")
        if row["since"] != ALWAYS and not is_date(row["since"]):
            raise FactError(f"{where}: {name} has the date {row['since']!r}, not YYYY-MM or always")
        if not row["blocked_source"]:
            raise FactError(f"{where}: {name} has no source of its seconds")
        try:
            blocked = float(row["blocked_s"])
        except ValueError as e:
            raise FactError(f"{where}: {e}") from None
        found[name] = AsyncCheckpoint(
            stack=name,
            since=row["since"],
            blocked_s=blocked,
            blocked_source=row["blocked_source"],
            source=row["source"],
        )
    return found


@cache
def _table() -> dict[str, AsyncCheckpoint]:
    return load_async_checkpoints()


def async_checkpoint(stack: str) -> AsyncCheckpoint:
    """What the table has on a stack; NEVER where it has no row."""
    return _table().get(stack, NEVER)
