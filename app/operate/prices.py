"""Checks of the prices: age, number, sources, and failing sources."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from app.operate.finding import Finding
from pricing.disk import prices_folder
from pricing.offers import age_days, first_day, snapshot
from pricing.source_state import SourceState, read_quarantine, read_state
from pricing.sources import SOURCES, Source

OLD_DAYS = 30  # age of the newest price, or of a source's last answer
SKEW = timedelta(days=1)  # a source in an eastern time zone may date a price tomorrow


def look(now: datetime) -> Iterator[Finding]:
    """The snapshot in use, then every source, then the prices held back."""
    yield _snapshot(now)
    state = read_state(prices_folder())
    if not any(record.attempted_at for record in state.sources.values()):
        yield Finding(
            area="prices", name="sources", state="note",
            value="no refresh was ever made here: prices are those that came with Runcast",
            numbers={"never_refreshed": True},
        )  # fmt: skip
        return
    for source in SOURCES:
        yield _source(source, state.of(source.name), now)
    held = len(read_quarantine(prices_folder()))
    yield Finding(
        area="prices", name="held back", state="ok" if held == 0 else "note",
        value=f"{held:,} rows: `runcast prices quarantine` lists them" if held else "none",
        numbers={"rows": held},
    )  # fmt: skip


def _snapshot(now: datetime) -> Finding:
    found = snapshot()
    days = age_days(found.newest, now.date())
    ahead = first_day(found.newest) > (now + SKEW).date()
    todo = ""
    if ahead:
        todo = "The newest price is of a day to come: set this machine's clock."
    elif days > OLD_DAYS:
        todo = "Fetch new ones: `runcast refresh` (docs/deploy.md: on a schedule)."
    return Finding(
        area="prices",
        name="snapshot",
        state="warning" if todo else "ok",
        value=f"{found.id}: {len(found.offers):,} prices, the newest of {found.newest}",
        todo=todo,
        numbers={"snapshot": found.id, "offers": len(found.offers), "age_days": days},
    )


def _source(source: Source, record: SourceState, now: datetime) -> Finding:
    days = record.age_days(now)
    ahead = bool(record.succeeded_at) and datetime.fromisoformat(record.succeeded_at) > (
        now.astimezone(UTC) + SKEW
    )
    todo = ""
    if ahead:
        value, todo = "answered at a time to come", "Set this machine's clock."
    elif days is None:
        lacks = source.key and not os.environ.get(source.key)
        value = f"not asked without {source.key}" if lacks else "never answered"
        if record.attempted_at and record.sentence and not lacks:
            todo = f"It failed: {record.sentence}"
    else:
        value = f"{record.rows:,} prices, answered {_ago(days)}"
        if record.sentence:
            todo = f"The last time it failed, in whole or in part: {record.sentence}"
        elif days > OLD_DAYS:
            todo = "It has not answered since: `runcast refresh --source " + source.name + "`."
    return Finding(
        area="prices",
        name=source.name,
        state="warning" if todo else "note" if days is None else "ok",
        value=value,
        todo=todo,
        numbers={
            "rows": record.rows,
            "age_days": None if days is None else round(days, 2),
            "live": bool(record.live_at),
            "held_back": record.quarantined,
        },
    )


def _ago(days: float) -> str:
    return f"{days * 24:.0f} hours ago" if days < 2 else f"{days:.0f} days ago"
