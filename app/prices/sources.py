"""Sources, past refreshes and quarantined rows as tables and sentences of the Prices page."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from app.document import format as fmt
from app.document.table import Column, Table, column, text_column
from app.prices import over_time
from app.prices.history_document import refreshes
from core.errors import FactError
from pricing.disk import prices_folder
from pricing.held_lists import Rows, held_lists, leave, take
from pricing.judgement import Quarantined
from pricing.source_state import NEVER_LIVE, SourceState, State, read_quarantine, read_state
from pricing.sources import SOURCES, Source
from pricing.store.engine import Store, StoreError
from pricing.store.quarantine import Held, quarantine, release
from pricing.store.queries import Run, refresh_runs

RUNS_SHOWN, HELD_SHOWN = 20, 500
Row = tuple[Source, SourceState]
HeldRow = tuple[Quarantined, Held | None]


def state_or_sentence() -> tuple[State, str]:
    """The state of the sources on this installation, or a sentence on why it cannot be read."""
    try:
        return read_state(prices_folder()), ""
    except FactError as e:
        return State(), str(e)


def sources_table(state: State) -> Table[Row]:
    """One row for each source, including those that were never queried."""
    rows = tuple((source, state.of(source.name)) for source in SOURCES)
    return Table(caption="Sources, each with its last answer", columns=COLUMNS, rows=rows)


def _message(source: Source, record: SourceState) -> str:
    if record.sentence:
        return record.sentence
    if source.key and not os.environ.get(source.key):
        return f"not asked without {source.key}"
    return ""


def _number(head: str, of: Callable[[SourceState], float]) -> Column[Row]:
    """A number of a source; missing, not 0, for one that was never queried."""
    return column(head, lambda r: of(r[1]) if r[1].attempted_at else None)


COLUMNS: tuple[Column[Row], ...] = (
    text_column("Source", lambda r: r[0].name),
    text_column("Live", lambda r: f"since {r[1].live_at[:10]}" if r[1].live_at else NEVER_LIVE),
    column("Last answer", lambda r: pd.to_datetime(r[1].succeeded_at, utc=True)),
    _number("Prices", lambda s: s.rows),
    _number("Held back", lambda s: s.quarantined),
    text_column("Last said", lambda r: _message(*r)),
    text_column("What it lists", lambda r: r[0].says),
    _number("Seconds", lambda s: round(s.seconds, 1)),
)
HELD_CAPTION = "Prices that are held back, each with its rule and reason"
HELD_COLUMNS: tuple[Column[HeldRow], ...] = (
    text_column("Source", lambda r: r[0].source),
    text_column("Rule", lambda r: r[0].rule),
    text_column("Why", lambda r: r[0].sentence),
    column("USD per hour", lambda r: r[0].usd_per_hour),
    text_column("Since", lambda r: r[1].since.date().isoformat() if r[1] else ""),
    text_column("Key", lambda r: r[0].key),
)


def never_live_sentence(state: State) -> str:
    """How many sources have answered from their real server on this installation."""
    live = sum(bool(state.of(s.name).live_at) for s in SOURCES)
    if live == len(SOURCES):
        return f"All {live} sources have answered here."
    return (
        f"{live} of {len(SOURCES)} sources have answered on this installation; the others say "
        f"'{NEVER_LIVE}' until a refresh of theirs has succeeded."
    )


def runs_table(runs: Sequence[Run]) -> Table[Run]:
    """Past refreshes, the newest first."""
    shown = ("Ended (UTC)", "Outcome", "Prices", "Seconds", "Snapshot", "Sources that failed")
    return refreshes(runs).only(*shown)


def past_runs(store: Store | None) -> tuple[Sequence[Run], str]:
    """The last refreshes in the store, or a sentence on why they cannot be read."""
    if store is None:
        return (), ""
    try:
        return refresh_runs(store, limit=RUNS_SHOWN), ""
    except StoreError as e:
        return (), str(e)


def held_table(store: Store | None) -> tuple[Table[HeldRow], tuple[Held, ...], str]:
    """The quarantined rows, those that a person may release, and a sentence if a read failed.

    The rows come from the file of the last refresh. Since when they are held, and whether they may
    be released, comes from the store.
    """
    table = Table(caption=HELD_CAPTION, columns=HELD_COLUMNS, rows=())
    try:
        rows = read_quarantine(prices_folder())[:HELD_SHOWN]
    except FactError as e:
        return table, (), str(e)
    known, sentence = _held_by_key(store, [q.key for q in rows])
    table = replace(table, rows=tuple((q, known.get(q.key)) for q in rows))
    return table, tuple(h for h in known.values() if h.releasable), sentence


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


def lists_held() -> dict[str, Rows]:
    """The sources whose whole list is held back; none where the file cannot be read, which the
    table of held rows says."""
    try:
        return held_lists(prices_folder())
    except FactError:
        return {}


def list_sentence(rows: Rows) -> str:
    """What a list that is held back would change, and who leaves it."""
    left = f" It is left by {rows[-1].left_by}." if rows[-1].left_by else ""
    return rows[-1].sentence + left


def take_sentence(store: Store, source: str, *, by: str, why: str) -> str:
    """Take the list of a source in the name of `by`, and say so."""
    take(store, source, by=by, why=why, folder=prices_folder())
    return f"The list of {source} is taken by {by}: it is published if its source still says so."


def leave_sentence(source: str, *, by: str, why: str) -> str:
    """Leave the list of a source in the name of `by`, and say so."""
    leave(source, by=by, why=why, folder=prices_folder())
    return f"The list of {source} is left by {by}: its last prices stay while it says about this."
