"""Queries of pages and commands: refresh runs, price changes, cheapest prices.

Each is bounded (`limit`), reads one state of the store, and takes well under a tenth of a second
at a million observations; docs/prices.md has the times.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, and_, func, select
from sqlalchemy.orm import aliased

from pricing.series import Sku
from pricing.store.engine import Store
from pricing.store.models import ObservationRow, RunRow, SeriesRow, SourceRunRow, table_of

_RUNS = table_of(RunRow)
_SOURCES = table_of(SourceRunRow)
_SERIES = table_of(SeriesRow)
_OBSERVATIONS = table_of(ObservationRow)
_SKU = tuple(_SERIES.c[name] for name in Sku._fields)
ANSWERED = ("refreshed", "in part")
_NO_RUN = 2**31 - 1  # later than every refresh


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRun:
    """One source in one refresh."""

    run_id: int
    source: str
    status: str  # refreshed, in part, failed
    at: datetime
    rows: int
    new: int
    changed: int
    gone: int
    quarantined: int
    seconds: float
    megabytes: float
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One refresh. 'recovered': it was killed after it published, and recorded later."""

    id: int
    token: int
    began_at: datetime
    ended_at: datetime
    outcome: str  # refreshed, in part, failed, recovered
    published: bool
    snapshot_id: str  # the snapshot in use afterwards
    offers: int
    seconds: float
    host: str
    sources: tuple[SourceRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A change of a price, as one source printed it."""

    sku: Sku
    source: str
    ref: str  # as named in the rows of the source
    run_id: int
    at: datetime
    observed_at: str  # as its source dates it
    state: str  # seen, gone, unknown (held back, or in a part that failed)
    usd_per_hour: float | None  # None unless seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change and the price before it."""

    sku: Sku
    source: str
    at: datetime
    before: float | None  # None: new, or not seen before
    after: float | None  # None: gone, or not known


def refresh_runs(store: Store, *, limit: int = 50, since: datetime | None = None) -> list[Run]:
    """The last refreshes with their sources, newest first."""
    wanted = select(_RUNS).order_by(_RUNS.c.id.desc()).limit(limit)
    if since is not None:
        wanted = wanted.where(_RUNS.c.ended_at >= since)
    with store.reading() as connection:
        runs = connection.execute(wanted).all()
        if not runs:
            return []
        by_run: dict[int, list[SourceRun]] = defaultdict(list)
        least, most = runs[-1].id, runs[0].id
        of_them = select(_SOURCES).where(_SOURCES.c.run_id.between(least, most))
        for row in connection.execute(of_them.order_by(_SOURCES.c.run_id, _SOURCES.c.source)):
            by_run[row.run_id].append(SourceRun(**row._mapping))
    return [Run(**row._mapping, sources=tuple(by_run[row.id])) for row in runs]


def _source_runs(
    connection: Connection, source: str, since: datetime | None, limit: int | None
) -> list[SourceRun]:
    wanted = select(_SOURCES).where(_SOURCES.c.source == source)
    if since is not None:
        wanted = wanted.where(_SOURCES.c.at >= since)
    wanted = wanted.order_by(_SOURCES.c.run_id.desc()).limit(limit)
    return [SourceRun(**row._mapping) for row in connection.execute(wanted)]


def skus(
    store: Store,
    *,
    accelerator: str | None = None,
    provider: str | None = None,
    purchase: str | None = None,
    limit: int = 1000,
) -> list[Sku]:
    """The SKUs with prices in the store, in alphabetical order."""
    wanted = select(*_SKU).distinct().order_by(*_SKU).limit(limit)
    given = {"accelerator": accelerator, "provider": provider, "purchase": purchase}
    for name, value in given.items():
        if value is not None:
            wanted = wanted.where(_SERIES.c[name] == value)
    with store.reading() as connection:
        return [Sku(*row) for row in connection.execute(wanted)]


def _observations(connection: Connection, sku: Sku, since: datetime | None) -> list[Observation]:
    of_sku = and_(*(column == value for column, value in zip(_SKU, sku, strict=True)))
    wanted = (
        select(_OBSERVATIONS, _SERIES.c.source, _SERIES.c.ref, _RUNS.c.ended_at)
        .join(_SERIES, _SERIES.c.id == _OBSERVATIONS.c.series_id)
        .join(_RUNS, _RUNS.c.id == _OBSERVATIONS.c.run_id)
        .where(of_sku)
        .order_by(_OBSERVATIONS.c.run_id, _SERIES.c.source)
    )
    if since is not None:
        earlier = aliased(ObservationRow)
        later = select(func.min(_RUNS.c.id)).where(_RUNS.c.ended_at >= since).scalar_subquery()
        first = func.coalesce(later, _NO_RUN)
        # The last change before `since`, else all of them are later.
        begins = (
            select(func.max(earlier.run_id))
            .where(earlier.series_id == _OBSERVATIONS.c.series_id, earlier.run_id < first)
            .scalar_subquery()
        )
        wanted = wanted.where(_OBSERVATIONS.c.run_id >= func.coalesce(begins, 0))
    return [_observation(sku, row) for row in connection.execute(wanted)]


def _observation(sku: Sku, row: Row[tuple[object, ...]]) -> Observation:
    return Observation(
        sku=sku,
        source=row.source,
        ref=row.ref,
        run_id=row.run_id,
        at=row.ended_at,
        observed_at=row.observed_at,
        state=row.state,
        usd_per_hour=row.usd_per_hour,
    )


def observed(
    store: Store, sku: Sku, *, since: datetime | None = None
) -> tuple[list[Observation], dict[str, list[SourceRun]]]:
    """The changes of one price, and the refreshes of the sources that print it, from one state of
    the store and oldest first, for its history."""
    with store.reading() as connection:
        found = _observations(connection, sku, since)
        # From the first change on; before it there was no price.
        begins = min((o.at for o in found), default=None)
        names = sorted({o.source for o in found})
        runs = {name: _source_runs(connection, name, begins, None)[::-1] for name in names}
    return found, runs


def changes(store: Store, *, limit: int = 100) -> list[Change]:
    """The last changes of prices, newest first."""
    before = aliased(ObservationRow)
    previous = (
        select(before.usd_per_hour)
        .where(
            before.series_id == _OBSERVATIONS.c.series_id, before.run_id < _OBSERVATIONS.c.run_id
        )
        .order_by(before.run_id.desc())
        .limit(1)
        .scalar_subquery()
    )
    newest = (
        select(_OBSERVATIONS)
        .order_by(_OBSERVATIONS.c.run_id.desc(), _OBSERVATIONS.c.series_id)
        .limit(limit)
        .subquery()
    )
    wanted = (
        select(*_SKU, _SERIES.c.source, _RUNS.c.ended_at, _OBSERVATIONS.c.usd_per_hour, previous)
        .join(_SERIES, _SERIES.c.id == _OBSERVATIONS.c.series_id)
        .join(_RUNS, _RUNS.c.id == _OBSERVATIONS.c.run_id)
        .join(
            newest,
            and_(
                newest.c.series_id == _OBSERVATIONS.c.series_id,
                newest.c.run_id == _OBSERVATIONS.c.run_id,
            ),
        )
        .order_by(_OBSERVATIONS.c.run_id.desc(), _OBSERVATIONS.c.series_id)
    )
    with store.reading() as connection:
        return [
            Change(sku=Sku(*row[:6]), source=row[6], at=row[7], after=row[8], before=row[9])
            for row in connection.execute(wanted)
        ]
