"""Sources, past refreshes and quarantined rows as tables and sentences of the Price data page."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pandas as pd

from app.document import format as fmt
from app.prices import over_time
from app.prices.history_document import refreshes
from core.errors import FactError
from pricing.disk import prices_folder
from pricing.source_state import NEVER_LIVE, SourceState, State, read_quarantine, read_state
from pricing.sources import SOURCES, Source
from pricing.store.engine import Store, StoreError
from pricing.store.quarantine import Held, quarantine, release
from pricing.store.queries import Run, refresh_runs

RUNS_SHOWN, HELD_SHOWN = 20, 500


def state_or_sentence() -> tuple[State, str]:
    """The state of the sources on this installation, or a sentence on why it cannot be read."""
    try:
        return read_state(prices_folder()), ""
    except FactError as e:
        return State(), str(e)


def sources_frame(state: State) -> pd.DataFrame:
    """One row for each source, including those that were never queried."""
    rows = [(source, state.of(source.name)) for source in SOURCES]
    return pd.DataFrame(
        {
            "Source": [s.name for s, _ in rows],
            "Live": [_live(r) for _, r in rows],
            "Last answer": pd.to_datetime(
                [r.succeeded_at for _, r in rows], format="ISO8601", utc=True
            ),
            "Prices": _asked(rows, [r.rows for _, r in rows]),
            "Held back": _asked(rows, [r.quarantined for _, r in rows]),
            "Last said": [_said(s, r) for s, r in rows],
            "What it lists": [s.says for s, _ in rows],
            "Seconds": _asked(rows, [r.seconds for _, r in rows]),
        }
    )


def _asked(rows: Sequence[tuple[Source, SourceState]], values: Sequence[float]) -> pd.Series:
    """One number per source; missing, not 0, for a source that was never queried."""
    told = [v if r.attempted_at else None for (_, r), v in zip(rows, values, strict=True)]
    return pd.Series(told, dtype="Float64").round(1)


def _live(record: SourceState) -> str:
    return f"since {record.live_at[:10]}" if record.live_at else NEVER_LIVE


def _said(source: Source, record: SourceState) -> str:
    if record.sentence:
        return record.sentence
    if source.key and not os.environ.get(source.key):
        return f"not asked without {source.key}"
    return ""


def never_live_sentence(state: State) -> str:
    """How many sources have answered from their real server on this installation."""
    live = sum(bool(state.of(s.name).live_at) for s in SOURCES)
    if live == len(SOURCES):
        return f"All {live} sources have answered here."
    return (
        f"{live} of {len(SOURCES)} sources have answered on this installation; the others say "
        f"'{NEVER_LIVE}' until a refresh of theirs has succeeded."
    )


def runs_frame(runs: Sequence[Run]) -> pd.DataFrame:
    """Past refreshes, the newest first."""
    shown = ("Ended (UTC)", "Outcome", "Prices", "Seconds", "Snapshot", "Sources that failed")
    return refreshes(runs).only(*shown).frame()


def past_runs(store: Store | None) -> tuple[Sequence[Run], str]:
    """The last refreshes in the store, or a sentence on why they cannot be read."""
    if store is None:
        return (), ""
    try:
        return refresh_runs(store, limit=RUNS_SHOWN), ""
    except StoreError as e:
        return (), str(e)


def held_frame(store: Store | None) -> tuple[pd.DataFrame, tuple[Held, ...], str]:
    """The quarantined rows, those that a person may release, and a sentence if a read failed.

    The rows come from the file of the last refresh. Since when they are held, and whether they may
    be released, comes from the store.
    """
    try:
        rows = read_quarantine(prices_folder())[:HELD_SHOWN]
    except FactError as e:
        return pd.DataFrame(), (), str(e)
    known, sentence = _held_by_key(store, [q.key for q in rows])
    frame = pd.DataFrame(
        {
            "Source": [q.source for q in rows],
            "Rule": [q.rule for q in rows],
            "Why": [q.sentence for q in rows],
            "USD per hour": [q.usd_per_hour for q in rows],
            "Since": [
                known[q.key].since.date().isoformat() if q.key in known else "" for q in rows
            ],
            "Key": [q.key for q in rows],
        }
    )
    return frame, tuple(h for h in known.values() if h.releasable), sentence


def _held_by_key(store: Store | None, keys: Sequence[str]) -> tuple[dict[str, Held], str]:
    if store is None:
        return {}, ""
    try:
        held = {h.key: h for h in quarantine(store, limit=HELD_SHOWN)}
    except StoreError as e:
        return {}, str(e)
    return {key: held[key] for key in keys if key in held}, ""


def held_label(held: Held) -> str:
    """A quarantined row in one line."""
    what = "" if held.sku is None else over_time.label(held.sku)
    return f"{what}: {fmt.usd_per_hour(held.usd_per_hour)} ({held.source}, {held.rule})"


def release_sentence(store: Store, held: Held, *, by: str, why: str) -> str:
    """Release a row in the name of `by` and say so."""
    found = release(store, held.key, by=by, why=why)
    return f"{held_label(held)} is released by {found.by}: the next refresh publishes it."
