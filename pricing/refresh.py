"""Refresh prices: ask every source at once, judge what they say, publish one snapshot.

What was published stays until the next snapshot replaces it by one rename. A source that fails
keeps its last good rows with their date; rows that are held back go to the quarantine and the last
good row of their place stays. Two refreshes exclude one another.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path

from core.offer import Offer
from pricing.asking import Fetched, Progress, ask
from pricing.disk import prices_folder
from pricing.integrity import price_bands
from pricing.judgement import Judged, Quarantined, judged
from pricing.lease import Lease, lease
from pricing.offers import (
    SNAPSHOTS,
    Row,
    first_day,
    installed_id,
    make_offer,
    make_row,
    read_rows,
)
from pricing.publish import make_current, write_snapshot
from pricing.session import OVERRIDE
from pricing.source_state import (
    SourceState,
    State,
    forget_unused_rows,
    keep_rows,
    last_good,
    read_quarantine,
    read_state,
    write_quarantine,
    write_state,
)
from pricing.sources import SOURCES, Source

REFUSED_KEPT = 200  # of one source's malformed rows; the count says how many there were


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What became of one source."""

    source: str
    says: str
    status: str  # refreshed, in part, failed, no key, not asked
    rows: int = 0  # published, old ones that stay among them
    new: int = 0
    changed: int = 0
    gone: int = 0
    quarantined: int = 0
    left_out: int = 0
    age_days: float | None = None  # since it last succeeded; None: it never did
    live: bool = False  # it has succeeded against its real server here
    seconds: float = 0.0
    megabytes: float = 0.0
    sentence: str = ""
    warnings: tuple[str, ...] = ()
    left_out_why: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a refresh."""

    lines: tuple[Line, ...]
    snapshot_id: str  # the one in use afterwards
    published: bool  # a snapshot was published, be it the same as before
    offers: int
    seconds: float
    quarantined: tuple[Quarantined, ...]

    @property
    def failed(self) -> bool:
        """No source that was asked succeeded, not even in part."""
        asked = [x for x in self.lines if x.status not in ("not asked", "no key")]
        return not any(x.status in ("refreshed", "in part") for x in asked)

    @property
    def partial(self) -> bool:
        """Some sources failed or were read in part only."""
        return any(x.status in ("failed", "in part") for x in self.lines)


def refresh(
    sources: Sequence[Source] = SOURCES,
    *,
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    accepted: Collection[str] = (),
    dry_run: bool = False,
    progress: Progress | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Report:
    """Refresh these sources. A dry run asks and judges, and writes nothing at all."""
    folder = prices_folder() if folder is None else folder
    environ = os.environ if environ is None else environ
    if dry_run:
        return _refresh(sources, folder, environ, accepted, None, progress, now)
    with lease(folder) as held:
        return _refresh(sources, folder, environ, accepted, held, progress, now)


def _refresh(
    sources: Sequence[Source],
    folder: Path,
    environ: Mapping[str, str],
    accepted: Collection[str],
    held: Lease | None,
    progress: Progress | None,
    now: Callable[[], datetime],
) -> Report:
    began = time.monotonic()
    state = read_state(folder)
    names = dict.fromkeys(s.name for s in (*SOURCES, *sources))
    last = {name: last_good(state, name, folder) for name in names}
    base = read_rows(SNAPSHOTS / f"{installed_id(folder=SNAPSHOTS)}.parquet")
    caches = folder / "cache" if held else None
    found = ask(sources, environ, caches, last, accepted, progress, now)
    verdicts = judged(
        {f.source.name: f.offers for f in found if f.status in ("refreshed", "in part")},
        last,
        [make_offer(row) for row in base],
        bands=price_bands(),
        today=now().astimezone(UTC).date(),
        accepted=accepted,
    )
    at = now().astimezone(UTC).isoformat(timespec="seconds")
    records = dict(state.sources)
    good = dict(last)
    for f in found:
        name = f.source.name
        if verdict := verdicts.get(name):
            good[name] = (*verdict.offers, *_of_failed_parts(f, verdict, last[name]))
        records[name] = _record(state.of(name), f, len(good[name]), verdicts.get(name), at, environ)
    quarantine = _quarantine(found, verdicts, folder)
    rows = _merged(base, [o for offers in good.values() for o in offers])
    succeeded = bool(verdicts)
    snapshot_id = state.snapshot_id
    if held:
        if succeeded:
            snapshot_id = write_snapshot(rows, folder / "snapshots")
            for name in verdicts:
                rows_id = keep_rows(good[name], folder)
                records[name] = replace(records[name], rows_id=rows_id)
            held.check()
            make_current(snapshot_id, folder / "snapshots")
        after = State(
            snapshot_id=snapshot_id,
            published_at=at if succeeded else state.published_at,
            token=held.token,
            sources=records,
        )
        held.check()
        write_quarantine(quarantine, folder)
        write_state(after, folder)
        forget_unused_rows(after, folder)
    return Report(
        lines=_lines(found, verdicts, records, good, now()),
        snapshot_id=snapshot_id or installed_id(folder=SNAPSHOTS),
        published=bool(held) and succeeded,
        offers=len(rows),
        seconds=time.monotonic() - began,
        quarantined=tuple(quarantine),
    )


# --- what is published ---------------------------------------------------------------------------


def _of_failed_parts(f: Fetched, verdict: Judged, last: Sequence[Offer]) -> list[Offer]:
    """The old rows of the parts that could not be read."""
    here = {
        (o.provider, o.instance_type, o.gpu_count, o.region, o.purchase) for o in verdict.offers
    }
    return [
        o
        for o in last
        if (o.provider, o.instance_type, o.gpu_count, o.region, o.purchase) not in here
        and any(p.provider in ("", o.provider) and p.region in ("", o.region) for p in f.parts)
    ]


def _merged(base: Sequence[Row], live: Sequence[Offer]) -> list[Row]:
    """The live rows, and the bundled ones of what no newer live row is about.

    A bundled price gives way to a newer live one of the same provider, accelerator, GPU count and
    purchase: where a live list no longer names a region, the old price there is not sold.
    """
    newest: dict[tuple[object, ...], date] = {}
    for o in live:
        key = (o.provider, o.accelerator, o.gpu_count, o.purchase)
        day = first_day(o.observed_at)
        newest[key] = max(day, newest.get(key, day))
    kept = []
    for row in base:
        o = make_offer(row)
        live_day = newest.get((o.provider, o.accelerator, o.gpu_count, o.purchase))
        if live_day is None or first_day(o.observed_at) >= live_day:
            kept.append(row)
    return list(dict.fromkeys([*kept, *map(make_row, live)]))


def _quarantine(
    found: Sequence[Fetched], verdicts: Mapping[str, Judged], folder: Path
) -> list[Quarantined]:
    """What is held back now: the new findings, and the old ones of silent sources."""
    renewed = set(verdicts)
    rows = [q for q in read_quarantine(folder) if q.source not in renewed]
    for f in found:
        if f.source.name in renewed:
            rows += [
                Quarantined(source=f.source.name, rule="shape", sentence=f"{r.row}: {r.reason}")
                for r in f.refused[:REFUSED_KEPT]
            ]
            rows += verdicts[f.source.name].quarantined
    return rows


def _record(
    before: SourceState,
    f: Fetched,
    rows: int,
    verdict: Judged | None,
    at: str,
    environ: Mapping[str, str],
) -> SourceState:
    """The record of a source after this refresh; one that was not asked keeps its own."""
    if f.status == "no key":
        return replace(before, sentence=f.sentence)
    after = replace(before, attempted_at=at, seconds=round(f.seconds, 3), sentence=f.sentence)
    if verdict is None:
        return after
    mirror = environ.get(OVERRIDE + f.source.name.upper(), "").strip()
    return replace(
        after,
        succeeded_at=at,
        live_at=before.live_at if mirror else at,
        rows=rows,
        quarantined=len(verdict.quarantined) + len(f.refused),
    )


def _lines(
    found: Sequence[Fetched],
    verdicts: Mapping[str, Judged],
    records: Mapping[str, SourceState],
    good: Mapping[str, Sequence[Offer]],
    now: datetime,
) -> tuple[Line, ...]:
    """One line per source, also of those that were not asked."""
    asked = {f.source.name: f for f in found}
    lines = []
    for source in SOURCES + tuple(f.source for f in found if f.source not in SOURCES):
        record = records.get(source.name) or SourceState(name=source.name)
        line = Line(
            source=source.name,
            says=source.says,
            status="not asked",
            rows=len(good.get(source.name, ())),
            quarantined=record.quarantined,
            age_days=record.age_days(now),
            live=bool(record.live_at),
            sentence=record.sentence,
        )
        if f := asked.get(source.name):
            verdict = verdicts.get(source.name)
            line = replace(
                line,
                status=f.status,
                new=verdict.new if verdict else 0,
                changed=verdict.changed if verdict else 0,
                gone=verdict.gone if verdict else 0,
                left_out=sum(f.left_out.values()),
                left_out_why=f.left_out,
                seconds=f.seconds,
                megabytes=f.bytes_read / 1e6,
                sentence=f.sentence,
                warnings=f.warnings,
            )
        lines.append(line)
    return tuple(lines)
