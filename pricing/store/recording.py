"""Record a refresh: the run, its sources, changed prices, and the quarantine.

Changes are found by comparison with the store, not with the previous refresh: a refresh that the
store missed loses its heartbeat, and the next one corrects every price.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from sqlalchemy import Connection, Table, bindparam, func, select

from core.machine.offer import Offer
from pricing.judgement import Quarantined
from pricing.series import Sku, sku_of
from pricing.store.models import (
    GONE,
    SEEN,
    UNKNOWN,
    HeldRow,
    ObservationRow,
    RunRow,
    SeriesRow,
    SourceRunRow,
    table_of,
)

BATCH_ROWS = 5_000
_RUNS = table_of(RunRow)
_SOURCES = table_of(SourceRunRow)
_SERIES = table_of(SeriesRow)
_OBSERVATIONS = table_of(ObservationRow)
_HELD = table_of(HeldRow)
_SKU = tuple(_SERIES.c[name] for name in Sku._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFound:
    """One source in one refresh. Its prices count unless it failed."""

    source: str
    status: str
    at: datetime
    rows: int = 0
    new: int = 0
    changed: int = 0
    gone: int = 0
    quarantined: int = 0
    seconds: float = 0.0
    megabytes: float = 0.0
    sentence: str = ""
    seen: Sequence[Offer] = ()  # now
    kept: Collection[Offer] = ()  # old rows that stay: held back, or in a part that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFound:
    """The record of one refresh."""

    token: int
    began_at: datetime
    ended_at: datetime
    outcome: str
    published: bool
    snapshot_id: str
    offers: int
    seconds: float
    host: str
    sources: Sequence[SourceFound]
    quarantined: Sequence[Quarantined]  # all that is held back now


def knows(connection: Connection, snapshot_id: str, published_at: datetime) -> bool:
    """Whether the refresh that published this snapshot then, or a later one, is recorded."""
    later = _RUNS.c.ended_at > published_at
    same = (_RUNS.c.ended_at == published_at) & (_RUNS.c.snapshot_id == snapshot_id)
    found = select(_RUNS.c.id).where(_RUNS.c.published, later | same).limit(1)
    return connection.execute(found).first() is not None


def record(connection: Connection, run: RunFound) -> int:
    """Record a refresh, in the transaction of the lease holder; returns its id."""
    run_id = _next(connection, _RUNS)
    values = {c.name: getattr(run, c.name) for c in _RUNS.c if c.name != "id"}
    connection.execute(_RUNS.insert(), {"id": run_id, **values})
    rows = [
        {c.name: run_id if c.name == "run_id" else getattr(f, c.name) for c in _SOURCES.c}
        for f in run.sources
    ]
    if rows:
        connection.execute(_SOURCES.insert(), rows)
    for f in run.sources:
        if f.status != "failed":
            _record_prices(connection, run_id, f)
    renewed = [f.source for f in run.sources if f.status != "failed"]
    _record_held(connection, run_id, renewed, run.quarantined)
    return run_id


def _next(connection: Connection, table: Table) -> int:
    """The next free number: only the holder of the lease writes."""
    return (connection.execute(select(func.max(table.c.id))).scalar_one() or 0) + 1


# --- prices --------------------------------------------------------------------------------------


class _Known(NamedTuple):
    """A series as stored."""

    id: int
    state: str
    usd_per_hour: float | None
    ref: str


def _record_prices(connection: Connection, run_id: int, found: SourceFound) -> None:
    """Record the events of one source: new and changed prices, and machines that were not seen."""
    known = {
        Sku(*row[:6]): _Known(row.id, row.state, row.usd_per_hour, row.ref)
        for row in connection.execute(
            select(
                *_SKU, _SERIES.c.id, _SERIES.c.state, _SERIES.c.usd_per_hour, _SERIES.c.ref
            ).where(_SERIES.c.source == found.source)
        )
    }
    next_id = _next(connection, _SERIES)
    made: list[Mapping[str, object]] = []
    moved: list[Mapping[str, object]] = []
    events: list[Mapping[str, object]] = []
    seen: set[Sku] = set()
    for o in found.seen:
        sku = sku_of(o)
        seen.add(sku)
        now = {
            "ref": o.source,
            "state": SEEN,
            "usd_per_hour": o.usd_per_hour,
            "usd_per_gpu_hour": (o.usd_per_hour or 0.0) / o.gpu_count,
        }
        before = known.get(sku)
        if before is None:
            series_id, next_id = next_id, next_id + 1
            made.append({"id": series_id, "source": found.source, **sku._asdict(), **now})
        elif (before.state, before.usd_per_hour, before.ref) == (SEEN, o.usd_per_hour, o.source):
            continue
        else:
            series_id = before.id
            moved.append({"series_id": series_id, **now})
            if (before.state, before.usd_per_hour) == (SEEN, o.usd_per_hour):
                continue  # only the name of its source differs
        events.append(_event(series_id, run_id, SEEN, o.usd_per_hour, o.observed_at))
    kept = {sku_of(o) for o in found.kept}
    day = found.at.date().isoformat()
    silent: list[Mapping[str, object]] = []
    for sku, before in known.items():
        state = UNKNOWN if sku in kept else GONE
        if sku not in seen and before.state != state:
            silent.append({"series_id": before.id, "state": state})
            events.append(_event(before.id, run_id, state, None, day))
    which = _SERIES.c.id == bindparam("series_id")
    changes = ("ref", "state", "usd_per_hour", "usd_per_gpu_hour")
    for batch in _batches(made):
        connection.execute(_SERIES.insert(), batch)
    for batch in _batches(moved):
        connection.execute(
            _SERIES.update().where(which).values({c: bindparam(c) for c in changes}), batch
        )
    for batch in _batches(silent):
        connection.execute(_SERIES.update().where(which).values(state=bindparam("state")), batch)
    for batch in _batches(events):
        connection.execute(_OBSERVATIONS.insert(), batch)


def _event(
    series_id: int, run_id: int, state: str, usd_per_hour: float | None, observed_at: str
) -> Mapping[str, object]:
    return {
        "series_id": series_id,
        "run_id": run_id,
        "state": state,
        "usd_per_hour": usd_per_hour,
        "observed_at": observed_at,
    }


# --- what is held back ---------------------------------------------------------------------------


def _record_held(
    connection: Connection, run_id: int, renewed: Sequence[str], held: Sequence[Quarantined]
) -> None:
    """Close rows that are no longer held back, and add new ones. Sources without an answer keep
    theirs."""
    now = {q.key: q for q in held if q.source in set(renewed)}
    open_keys = {
        row.key
        for row in connection.execute(
            select(_HELD.c.key).where(_HELD.c.closed_run.is_(None), _HELD.c.source.in_(renewed))
        )
    }
    closed = [{"held_key": k} for k in sorted(open_keys - now.keys())]
    for batch in _batches(closed):
        connection.execute(
            _HELD.update()
            .where(_HELD.c.key == bindparam("held_key"), _HELD.c.closed_run.is_(None))
            .values(closed_run=run_id),
            batch,
        )
    same = [
        {"held_key": k, "new_sentence": now[k].sentence, "new_usd": now[k].usd_per_hour}
        for k in sorted(open_keys & now.keys())
    ]
    for batch in _batches(same):  # a price that is held back may change
        connection.execute(
            _HELD.update()
            .where(_HELD.c.key == bindparam("held_key"), _HELD.c.closed_run.is_(None))
            .values(sentence=bindparam("new_sentence"), usd_per_hour=bindparam("new_usd")),
            batch,
        )
    fresh = [
        {"key": k, "first_run": run_id, "closed_run": None, **asdict(q)}
        for k, q in now.items()
        if k not in open_keys
    ]
    for batch in _batches(fresh):
        connection.execute(_HELD.insert(), batch)


def _batches(rows: Iterable[Mapping[str, object]]) -> Iterator[list[dict[str, object]]]:
    """Batches of bounded size, one statement each."""
    left = iter(rows)
    while batch := [dict(row) for row in islice(left, BATCH_ROWS)]:
        yield batch
