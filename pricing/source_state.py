"""State of the price sources of an installation: last attempts, answers and good rows.

    <data>/prices/state.json              this file: one record per source, the published snapshot
    <data>/prices/sources/<id>.parquet    the last good rows of one source, as in a snapshot
    <data>/prices/snapshots/              what was published; immutable, never deleted
    <data>/prices/quarantine.json         rows that are held back, each with its reason
    <data>/prices/cache/<source>/         bodies with an ETag, for the next refresh

A source is 'never run live' until it has succeeded on this installation against its real server; a
refresh from a mirror does not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from core.errors import FactError
from core.machine.offer import Offer
from hardware.outside.json_text import STATE, json_value
from pricing.disk import write_atomically
from pricing.judgement import Quarantined
from pricing.offers import make_offer, make_row, read_rows
from pricing.publish import write_snapshot

NEVER_LIVE = "never run live"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """The record of one source. Times are ISO, UTC; '' is never."""

    name: str
    attempted_at: str = ""
    succeeded_at: str = ""
    live_at: str = ""  # last success against its real server, not a mirror
    rows: int = 0
    rows_id: str = ""  # of sources/<rows_id>.parquet
    quarantined: int = 0
    seconds: float = 0.0
    sentence: str = ""  # why the last attempt failed, completely or in part

    def age_days(self, now: datetime) -> float | None:
        """Days since its last success, never negative; None: never."""
        if not self.succeeded_at:
            return None
        return max(0.0, (now - datetime.fromisoformat(self.succeeded_at)).total_seconds() / 86400)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The sources of an installation and the last published snapshot."""

    snapshot_id: str = ""
    published_at: str = ""
    token: int = 0  # of the lease that published
    sources: Mapping[str, SourceState] = field(default_factory=dict)

    def of(self, name: str) -> SourceState:
        return self.sources.get(name) or SourceState(name=name)


def read_state(folder: Path) -> State:
    """The state of a price folder; empty if there is none yet."""
    path = folder / "state.json"
    try:
        raw = json_value(path.read_bytes(), STATE)
        sources = {name: _record(name, kept) for name, kept in raw["sources"].items()}
        return State(
            snapshot_id=str(raw["snapshot_id"]),
            published_at=str(raw["published_at"]),
            token=int(raw["token"]),
            sources=sources,
        )
    except FileNotFoundError:
        return State()
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise FactError(
            f"{path.name} of the price folder is damaged ({type(e).__name__}): move it away and "
            "refresh again; the published snapshots stay."
        ) from None


def _record(name: str, kept: dict[str, Any]) -> SourceState:
    """One record; fields of newer versions are ignored."""
    known = {f.name for f in fields(SourceState)}
    return replace(SourceState(name=name), **{k: v for k, v in kept.items() if k in known})


def write_state(state: State, folder: Path) -> None:
    """Replace the state, completely or not at all."""
    value = {
        "snapshot_id": state.snapshot_id,
        "published_at": state.published_at,
        "token": state.token,
        "sources": {name: asdict(s) for name, s in sorted(state.sources.items())},
    }
    write_atomically(folder / "state.json", json.dumps(value, indent=1).encode() + b"\n")


def last_good(state: State, name: str, folder: Path) -> tuple[Offer, ...]:
    """The last good rows of a source, with the dates on which they were seen."""
    rows_id = state.of(name).rows_id
    if not rows_id:
        return ()
    return tuple(make_offer(r) for r in read_rows(folder / "sources" / f"{rows_id}.parquet"))


def keep_rows(offers: Iterable[Offer], folder: Path) -> str:
    """Store the good rows of a source; returns their id, '' for none."""
    rows = [make_row(o) for o in offers]
    return write_snapshot(rows, folder / "sources") if rows else ""


def forget_unused_rows(state: State, folder: Path) -> None:
    """Delete stored rows that no record names any more."""
    used = {s.rows_id for s in state.sources.values()}
    for path in (folder / "sources").glob("[!.]*"):
        if path.stem not in used:
            path.unlink(missing_ok=True)


def read_quarantine(folder: Path) -> list[Quarantined]:
    """The quarantined rows."""
    try:
        raw = json_value((folder / "quarantine.json").read_bytes(), STATE)
        return [Quarantined(**row) for row in raw]
    except FileNotFoundError:
        return []
    except (ValueError, TypeError) as e:
        raise FactError(f"quarantine.json is damaged ({type(e).__name__})") from None


def write_quarantine(rows: Iterable[Quarantined], folder: Path) -> None:
    """Replace the list of quarantined rows."""
    text = json.dumps([asdict(q) for q in rows], indent=1, allow_nan=False)
    write_atomically(folder / "quarantine.json", text.encode() + b"\n")
