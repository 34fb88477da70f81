"""`runcast refresh` on a terminal and as JSON: one line per source, then what failed and why."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from app.command.options import print_json
from app.document import format as fmt
from app.document.blocks import Block, Paragraph, Section
from app.document.echo import echo
from app.document.progress import terminal_bar
from app.document.table import Column, Table, column, text_column
from app.document.terminal import print_document
from core.errors import ScenarioError, shown
from pricing.fetched import Fetched
from pricing.lease import LeaseError
from pricing.refresh import refresh
from pricing.report import Line, Report
from pricing.source_state import NEVER_LIVE
from pricing.sources import chosen

REFRESHED, IN_PART, FAILED, BUSY = 0, 3, 4, 5  # exit statuses; 2 is a user error
LEAST_EVERY_S = 60.0
QUARANTINE_SHOWN = 8
_EVERY = re.compile(r"(\d{1,6})\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_between(text: str) -> float:
    """Seconds in an interval such as '6h', '30m' or '1d'.

    >>> seconds_between("6h")
    21600.0
    """
    found = _EVERY.fullmatch(text.strip().lower())
    if found is None:
        raise ScenarioError(f"--every {shown(text)} is not a time like 30m, 6h or 1d.")
    seconds = float(int(found[1]) * _SECONDS[found[2]])
    if seconds < LEAST_EVERY_S:
        raise ScenarioError(f"--every {shown(text)} is less than a minute: price servers say no.")
    return seconds


def run(
    names: Sequence[str],
    *,
    accepted: Sequence[str],
    dry_run: bool,
    every: str | None,
    as_json: bool,
) -> int:
    """Refresh once, or repeatedly; returns the exit status."""
    sources = chosen(names)
    asked = {s.name for s in chosen(accepted) if s in sources}
    if unasked := [n for n in accepted if n not in asked]:
        raise ScenarioError(
            f"--accept {shown(unasked[0])} is not among the sources that are asked."
        )
    pause_s = None if every is None else seconds_between(every)

    def once() -> int:
        with _bar(len(sources), quiet=as_json) as progress:
            report = refresh(sources, accepted=accepted, dry_run=dry_run, progress=progress)
        if as_json:
            print_json(report_json(report, dry_run=dry_run))
        else:
            print_document(_blocks(report, dry_run=dry_run))
        return FAILED if report.failed else IN_PART if report.partial else REFRESHED

    if pause_s is None:
        try:
            return once()
        except LeaseError as e:
            echo(f"runcast: {e}", err=True)
            return BUSY
    _repeat(once, pause_s)
    return REFRESHED


def _repeat(once: Callable[[], int], pause_s: float) -> None:
    """Refresh repeatedly until the process is stopped; if the folder is busy, try next time."""
    while True:
        began = time.monotonic()
        try:
            once()
        except LeaseError as e:
            echo(f"runcast: {e}", err=True)
        left_s = max(0.0, pause_s - (time.monotonic() - began))
        at = datetime.now(UTC) + timedelta(seconds=left_s)
        echo(f"runcast: the next refresh is at {at:%Y-%m-%d %H:%M} UTC", err=True)
        sys.stdout.flush()
        time.sleep(left_s)


@contextmanager
def _bar(total: int, *, quiet: bool) -> Iterator[Callable[[Fetched, int, int], None]]:
    """A progress bar on a terminal's standard error, nothing elsewhere."""
    with terminal_bar(quiet=quiet) as bar:
        task = bar.add_task("asking the sources", total=total)

        def progress(one: Fetched, done: int, total: int) -> None:
            text = f"{one.source.name}: {one.status}, {len(one.offers)} prices"
            bar.update(task, completed=done, total=total, description=text)

        yield progress


def report_json(report: Report, *, dry_run: bool) -> dict[str, Any]:
    """The report as JSON with the keys that docs/prices.md documents."""
    return {
        "snapshot": report.snapshot_id,
        "published": report.published,
        "dry_run": dry_run,
        "outcome": report.outcome,
        "num_offers": report.offers,
        "seconds": round(report.seconds, 3),
        "sources": [asdict(line) for line in report.lines],
        "quarantine": [{"key": q.key, **asdict(q)} for q in report.quarantined],
        "store": report.store,
    }


def _blocks(report: Report, *, dry_run: bool) -> Iterator[Block | Section]:
    yield Table(caption="Sources", columns=COLUMNS, rows=tuple(report.lines))
    for line in report.lines:
        if line.status != "not asked":
            for sentence in (line.sentence, *line.warnings):
                if sentence:
                    yield Paragraph(f"{line.source}: {sentence}")
    held = [f"held back, {q.source}, {q.rule}: {q.sentence}" for q in report.quarantined]
    lines = held[:QUARANTINE_SHOWN]
    if (more := len(held) - QUARANTINE_SHOWN) > 0:
        lines.append(f"and {fmt.count(more)} more rows are held back: --json lists all")
    if report.store:
        lines.append(f"{report.store} The price history misses this refresh.")
    first, *rest = (*lines, _sentence(report, dry_run))
    yield Section(first, tuple(map(Paragraph, rest)))


def _age(line: Line) -> str:
    """Days since a source last succeeded; an answer from a mirror is marked as such."""
    if line.age_days is None:
        return NEVER_LIVE
    days = int(line.age_days)
    text = "today" if days == 0 else "1 day" if days == 1 else f"{days} days"
    return text if line.live else f"{text}, {NEVER_LIVE}"


COLUMNS: tuple[Column[Line], ...] = (
    text_column("Source", lambda x: x.source),
    text_column("Outcome", lambda x: x.status),
    column("Prices", lambda x: x.rows, write=fmt.count),
    column("New", lambda x: x.new, write=fmt.count),
    column("Changed", lambda x: x.changed, write=fmt.count),
    column("Gone", lambda x: x.gone, write=fmt.count),
    column("Held back", lambda x: x.quarantined, write=fmt.count),
    column("Age", _age),
    column("Seconds", lambda x: f"{x.seconds:.1f}" if x.seconds else ""),
)


def _sentence(report: Report, dry_run: bool) -> str:
    took = f"{fmt.count(report.offers)} prices in {report.seconds:.1f} s"
    if dry_run:
        return f"{took}. A dry run: nothing was published."
    if not report.published:
        return f"No source answered: price snapshot {report.snapshot_id} stays in use."
    return f"{took}. Published as price snapshot {report.snapshot_id}."
