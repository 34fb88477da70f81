"""One refresh at a time, started from the Price data page followed by whoever looks at it.

It runs in a thread of the server, so that it goes on when its page is closed. A refresh of another
process (a schedule, the command line) holds the lease: then this one says so and ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.errors import RuncastError
from pricing.asking import Fetched
from pricing.refresh import refresh
from pricing.report import Report
from pricing.sources import Source, chosen

LEAST_BETWEEN_S = 60.0  # price servers say no to who asks all the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a refresh is; `sources` are those that have ended, in their order."""

    running: bool = False
    total: int = 0
    ended: tuple[tuple[str, str], ...] = ()  # source, what became of it
    sentence: str = ""  # of the end
    failed: bool = False

    @property
    def fraction(self) -> float:
        """The share of the sources that have ended."""
        return len(self.ended) / self.total if self.total else 0.0


@dataclass(slots=True)
class RefreshJob:
    """The refresh of this server. Every method may be called from any thread."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _progress: Progress = field(default_factory=Progress)
    _ended_at: float = -LEAST_BETWEEN_S
    _thread: threading.Thread | None = None

    def progress(self) -> Progress:
        """How far it is now."""
        with self._lock:
            return self._progress

    def start(self, names: Sequence[str] = ()) -> str:
        """Start one, of all sources or of these; a sentence says why not."""
        with self._lock:
            if self._progress.running:
                return "A refresh is at work already."
            if time.monotonic() - self._ended_at < LEAST_BETWEEN_S:
                return "The last refresh ended less than a minute ago: price servers say no."
            sources = chosen(names)
            self._progress = Progress(running=True, total=len(sources))
            self._thread = threading.Thread(
                target=self._run, args=(sources,), name="refresh prices", daemon=True
            )
            self._thread.start()
        return ""

    def wait(self, timeout_s: float) -> None:
        """Until the refresh has ended, for tests and for the end of a server."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _told(self, one: Fetched, ended: int, total: int) -> None:
        said = f"{one.status}, {len(one.offers):,} prices in {one.seconds:.1f} s"
        with self._lock:
            self._progress = replace(
                self._progress,
                total=total,
                ended=(*self._progress.ended, (one.source.name, one.sentence or said)),
            )

    def _run(self, sources: Sequence[Source]) -> None:
        # Whatever happens, the page must not wait for ever for a thread that is no more.
        sentence, failed = "A fault of this program ended the refresh: see the server's log.", True
        try:
            report = refresh(sources, progress=self._told)
            sentence, failed = report_sentence(report), report.failed
        except RuncastError as e:  # the lease is held elsewhere, a damaged file
            sentence = str(e)
        except OSError as e:
            sentence = f"The prices cannot be written: {e.strerror}."
        finally:
            with self._lock:
                self._ended_at = time.monotonic()
                self._progress = replace(
                    self._progress, running=False, sentence=sentence, failed=failed
                )


def report_sentence(report: Report) -> str:
    """What became of a refresh."""
    if report.failed:
        return f"No source answered: price snapshot {report.snapshot_id} stays in use."
    part = " Some sources failed, or a part of one: see the list." if report.partial else ""
    held = len(report.quarantined)
    return (
        f"{report.offers:,} prices are published as price snapshot {report.snapshot_id}; "
        f"{held:,} {'row is' if held == 1 else 'rows are'} held back.{part}"
    )
