"""Refresh of prices: ask all sources, check their rows, publish one snapshot.

The published snapshot stays until the next one replaces it by one rename. A source that fails keeps
its last good rows with their dates; rows that are held back go to the quarantine, and the last good
row of their place stays. Two refreshes exclude each other. `state.json` is written before the
rename: if the process is killed in between, the next refresh completes the publication.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from core.machine.offer import Offer
from pricing.asking import Progress, ask
from pricing.disk import prices_folder
from pricing.fetch.session import OVERRIDE
from pricing.fetched import Fetched
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
    snapshot_ids,
)
from pricing.publish import make_current, write_snapshot
from pricing.report import Report, found_run, lines_of
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
from pricing.store.recording import RunFound
from pricing.store.refresh_record import Memory, memory

REFUSED_KEPT = 200  # malformed rows of one source that are kept; the count has all of them


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
    """Refresh these sources. A dry run asks and checks them, but writes nothing."""
    folder = prices_folder() if folder is None else folder
    environ = os.environ if environ is None else environ
    if dry_run:
        return _refresh(sources, folder, environ, accepted, None, Memory(), progress, now)
    with lease(folder) as held, memory(folder, environ) as store:
        return _refresh(sources, folder, environ, accepted, held, store, progress, now)


def _refresh(
    sources: Sequence[Source],
    folder: Path,
    environ: Mapping[str, str],
    accepted: Collection[str],
    held: Lease | None,
    store: Memory,
    progress: Progress | None,
    now: Callable[[], datetime],
) -> Report:
    began, began_at = time.monotonic(), now()
    state = read_state(folder)
    if held:
        end_publication(state, folder)
        store.catch_up(state, folder)
    names = dict.fromkeys(s.name for s in (*SOURCES, *sources))
    last = {name: last_good(state, name, folder) for name in names}
    base = read_rows(SNAPSHOTS / f"{installed_id(folder=SNAPSHOTS)}.parquet")
    caches = folder / "cache" if held else None
    found = ask(sources, environ, caches, last, progress, now)
    verdicts = judged(
        {f.source.name: f.offers for f in found if f.status in ("refreshed", "in part")},
        last,
        [make_offer(row) for row in base],
        bands=price_bands(),
        today=now().astimezone(UTC).date(),
        accepted=accepted,
        released=store.released(),
        waiting=read_quarantine(folder),
        in_part={f.source.name for f in found if f.status == "in part"},
    )
    at = now().astimezone(UTC).replace(microsecond=0)
    records = dict(state.sources)
    good = dict(last)
    for f in found:
        name = f.source.name
        verdict = verdicts.get(name)
        if verdict is not None:
            good[name] = (*verdict.offers, *_of_failed_parts(f, verdict, last[name]))
        records[name] = _record(state.of(name), f, len(good[name]), verdict, at, environ)
    quarantine = _quarantine(found, verdicts, folder)
    rows = _merged(base, [o for offers in good.values() for o in offers])
    succeeded = bool(verdicts)
    snapshot_id = state.snapshot_id
    if held and succeeded:
        snapshot_id = write_snapshot(rows, folder / "snapshots")
        for name in verdicts:
            records[name] = replace(records[name], rows_id=keep_rows(good[name], folder))
    report = Report(
        lines=lines_of(found, verdicts, records, good, now()),
        snapshot_id=snapshot_id or installed_id(folder=SNAPSHOTS),
        published=bool(held) and succeeded,
        offers=len(rows),
        seconds=time.monotonic() - began,
        quarantined=tuple(quarantine),
    )
    if not held:
        return report
    after = State(
        snapshot_id=snapshot_id,
        published_at=at.isoformat() if succeeded else state.published_at,
        token=held.token,
        sources=records,
    )

    def write_files() -> None:
        held.check()
        write_quarantine(quarantine, folder)
        write_state(after, folder)
        if succeeded:
            make_current(snapshot_id, folder / "snapshots")
        forget_unused_rows(after, folder)

    def run(token: int) -> RunFound:
        return found_run(report, verdicts, good, token=token, began_at=began_at, ended_at=at)

    store.publish(write_files, run)
    return replace(report, seconds=time.monotonic() - began, store=store.sentence)


def end_publication(state: State, folder: Path) -> None:
    """Publish what a killed refresh had decided to publish, if it is intact on the disk."""
    snapshots = folder / "snapshots"
    if state.snapshot_id not in snapshot_ids(folder=snapshots):
        return
    try:
        current = (snapshots / "current").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        current = ""
    if current != state.snapshot_id:
        make_current(state.snapshot_id, snapshots)


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
    """The live rows, and the bundled rows that no newer live row replaces.

    A newer live price replaces a bundled one of its provider, accelerator, GPU count and purchase
    in all regions: where a live list no longer names a region, the machine is not sold there.
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
    """Rows that are held back now: the new ones, and the old ones of sources without an answer."""
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
    at: datetime,
    environ: Mapping[str, str],
) -> SourceState:
    """The record of a source after this refresh; a source that was not asked keeps its old one."""
    if f.status == "no key":
        return replace(before, sentence=f.sentence)
    when = at.isoformat()
    after = replace(before, attempted_at=when, seconds=round(f.seconds, 3), sentence=f.sentence)
    if verdict is None:
        return after
    mirror = environ.get(OVERRIDE + f.source.name.upper(), "").strip()
    return replace(
        after,
        succeeded_at=when,
        live_at=before.live_at if mirror else when,
        rows=rows,
        quarantined=len(verdict.quarantined) + len(f.refused),
    )
