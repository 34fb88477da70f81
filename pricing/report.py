"""Report of a refresh: a line per source, and the record for the store."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.machine.offer import Offer
from pricing.fetched import Fetched
from pricing.judgement import Judged, Quarantined
from pricing.source_state import SourceState
from pricing.sources import SOURCES
from pricing.store.recording import RunFound, SourceFound

ASKED = ("refreshed", "in part", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The result of one source."""

    source: str
    says: str
    status: str  # refreshed, in part, failed, no key, not asked
    rows: int = 0  # published, including old rows that stay
    new: int = 0
    changed: int = 0
    gone: int = 0
    quarantined: int = 0
    left_out: int = 0
    age_days: float | None = None  # since its last success; None: never
    live: bool = False  # whether it has ever succeeded against its real server
    seconds: float = 0.0
    megabytes: float = 0.0
    sentence: str = ""
    warnings: tuple[str, ...] = ()
    left_out_why: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a refresh."""

    lines: tuple[Line, ...]
    snapshot_id: str  # the snapshot in use afterwards
    published: bool  # whether a snapshot was published, even an unchanged one
    offers: int
    seconds: float
    quarantined: tuple[Quarantined, ...]
    store: str = ""  # why the refresh is not recorded in the store; '' if it is

    @property
    def failed(self) -> bool:
        """Whether no source succeeded, not even in part."""
        asked = [x for x in self.lines if x.status not in ("not asked", "no key")]
        return not any(x.status in ("refreshed", "in part") for x in asked)

    @property
    def partial(self) -> bool:
        """Whether some sources failed or were read only in part."""
        return any(x.status in ("failed", "in part") for x in self.lines)

    @property
    def outcome(self) -> str:
        """The outcome in a word or two."""
        return "failed" if self.failed else "in part" if self.partial else "refreshed"


def lines_of(
    found: Sequence[Fetched],
    verdicts: Mapping[str, Judged],
    records: Mapping[str, SourceState],
    good: Mapping[str, Sequence[Offer]],
    now: datetime,
) -> tuple[Line, ...]:
    """One line per source, including sources that were not asked."""
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


def found_run(
    report: Report,
    verdicts: Mapping[str, Judged],
    good: Mapping[str, Sequence[Offer]],
    *,
    token: int,
    began_at: datetime,
    ended_at: datetime,
) -> RunFound:
    """The record of the refresh for the store, with the sources that were asked."""
    sources = []
    for line in report.lines:
        if line.status not in ASKED:
            continue
        verdict = verdicts.get(line.source)
        seen = verdict.fresh if verdict else ()
        now = set(seen)
        sources.append(
            SourceFound(
                source=line.source,
                status=line.status,
                at=ended_at,
                rows=line.rows,
                new=line.new,
                changed=line.changed,
                gone=line.gone,
                quarantined=line.quarantined,
                seconds=line.seconds,
                megabytes=line.megabytes,
                sentence=line.sentence,
                seen=seen,
                kept=[o for o in good[line.source] if o not in now] if verdict else (),
            )
        )
    return RunFound(
        token=token,
        began_at=began_at,
        ended_at=ended_at,
        outcome=report.outcome,
        published=report.published,
        snapshot_id=report.snapshot_id,
        offers=report.offers,
        seconds=report.seconds,
        host=socket.gethostname(),
        sources=sources,
        quarantined=report.quarantined,
    )
