"""Quarantine: rows that are held back, since when, and releases by persons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select

from core.errors import ScenarioError, shown
from pricing.judgement import RELEASABLE, WHOLE, Quarantined, Released
from pricing.series import Sku
from pricing.store.engine import Store
from pricing.store.models import HeldRow, ReleaseRow, RunRow, table_of

_HELD = table_of(HeldRow)
_RELEASES = table_of(ReleaseRow)
_RUNS = table_of(RunRow)
TEXT_MAX = 500  # of a reason or a name


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A row that is or was held back."""

    key: str
    source: str
    rule: str
    sentence: str
    usd_per_hour: float | None
    sku: Sku | None  # None: the row could not be read as an offer
    since: datetime
    until: datetime | None  # None: still held back
    releasable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release by a person: prices close to this one are right at this place. That of a whole list
    has no place and no price."""

    key: str
    source: str
    sku: Sku
    usd_per_hour: float
    at: datetime
    by: str
    why: str


def quarantine(
    store: Store, *, source: str | None = None, held_only: bool = True, limit: int = 1000
) -> list[Held]:
    """Rows that are held back (or ever were), newest first."""
    began, ended = _RUNS.alias(), _RUNS.alias()
    wanted = (
        select(_HELD, began.c.ended_at.label("since"), ended.c.ended_at.label("until"))
        .join(began, began.c.id == _HELD.c.first_run)
        .outerjoin(ended, ended.c.id == _HELD.c.closed_run)
        .order_by(_HELD.c.first_run.desc(), _HELD.c.source, _HELD.c.key)
        .limit(limit)
    )
    if held_only:
        wanted = wanted.where(_HELD.c.closed_run.is_(None))
    if source is not None:
        wanted = wanted.where(_HELD.c.source == source)
    with store.reading() as connection:
        rows = connection.execute(wanted).all()
    found = []
    for row in rows:
        sku = Sku(*(getattr(row, name) for name in Sku._fields)) if row.provider else None
        found.append(
            Held(
                key=row.key,
                source=row.source,
                rule=row.rule,
                sentence=row.sentence,
                usd_per_hour=row.usd_per_hour,
                sku=sku,
                since=row.since,
                until=row.until,
                releasable=row.rule in RELEASABLE and bool(sku) and row.usd_per_hour is not None,
            )
        )
    return found


def release(
    store: Store, key: str, *, by: str, why: str = "", now: datetime | None = None
) -> Release:
    """Release a price that is held back: the next refresh publishes prices close to it there.
    `ScenarioError` for a key that is not held back, or a row that cannot be released."""
    at = datetime.now(UTC) if now is None else now
    with store.writing() as connection:
        row = connection.execute(
            select(_HELD).where(_HELD.c.key == key, _HELD.c.closed_run.is_(None))
        ).one_or_none()
        if row is None:
            raise ScenarioError(
                f"Nothing that is held back has the key {shown(key)}: see the quarantine."
            )
        if row.rule in WHOLE:
            raise ScenarioError(
                f"{key} holds back the whole list of {row.source}: take it on the Prices page, "
                f"or with `runcast refresh --source {row.source} --accept {row.source}`."
            )
        if row.rule not in RELEASABLE or row.usd_per_hour is None or not row.provider:
            raise ScenarioError(
                f"{key} is held back for its {shown(row.rule)}, which nobody can release: only "
                f"{', '.join(sorted(RELEASABLE))} can be."
            )
        values = {name: getattr(row, name) for name in ("source", *Sku._fields, "usd_per_hour")}
        values |= {"released_at": at, "released_by": by[:TEXT_MAX], "why": why[:TEXT_MAX]}
        connection.execute(_RELEASES.delete().where(_RELEASES.c.key == key))
        connection.execute(_RELEASES.insert(), {"key": key, **values})
    return _release({"key": key, **values})


def record_taken(
    store: Store, lists: Sequence[Quarantined], *, by: str, why: str, now: datetime | None = None
) -> None:
    """Record who takes whole lists that are held back, as releases without a place and a price."""
    at = datetime.now(UTC) if now is None else now
    said = {"released_at": at, "released_by": by[:TEXT_MAX], "why": why[:TEXT_MAX]}
    nowhere = Sku("", "", "", 0, "", "")._asdict()
    with store.writing() as connection:
        for q in lists:
            values = {"key": q.key, "source": q.source, **nowhere, "usd_per_hour": 0.0, **said}
            connection.execute(_RELEASES.delete().where(_RELEASES.c.key == q.key))
            connection.execute(_RELEASES.insert(), values)


def releases(store: Store) -> list[Release]:
    """Every price that a person has released, newest first."""
    wanted = select(_RELEASES).order_by(_RELEASES.c.released_at.desc(), _RELEASES.c.key)
    with store.reading() as connection:
        return [_release(dict(row._mapping)) for row in connection.execute(wanted)]


def released(store: Store) -> Released:
    """Released prices by source and place, for a refresh."""
    prices: dict[tuple[str, Sku], list[float]] = defaultdict(list)
    for r in releases(store):
        if r.sku.provider:  # else of a whole list
            prices[r.source, r.sku].append(r.usd_per_hour)
    return prices


def _release(row: dict[str, object]) -> Release:
    values: dict[str, object] = dict(row)
    return Release(
        key=str(values["key"]),
        source=str(values["source"]),
        sku=Sku(*(values[name] for name in Sku._fields)),  # type: ignore[arg-type]
        usd_per_hour=float(str(values["usd_per_hour"])),
        at=values["released_at"],  # type: ignore[arg-type]
        by=str(values["released_by"]),
        why=str(values["why"]),
    )
