"""A price refresh in the background of the server, one at a time, that every visitor can follow.

It runs in a thread of the server, so it continues when the page is closed. If a refresh of another
process (a schedule, the command line) holds the lease, this one reports that and ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.errors import RuncastError
from pricing.fetched import Fetched
from pricing.refresh import refresh
from pricing.report import Report
from pricing.sources import Source, chosen

LEAST_BETWEEN_S = 60.0  # price servers refuse clients that ask too often


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a refresh is; `ended` has the finished sources, in the order they finished."""

    running: bool = False
    total: int = 0
    ended: tuple[tuple[str, str], ...] = ()  # source, its outcome
    sentence: str = ""  # the outcome, once it has ended
    failed: bool = False

    @property
    def fraction(self) -> float:
        """The share of the sources that have ended."""
        return len(self.ended) / self.total if self.total else 0.0


@dataclass(slots=True)
class RefreshJob:
    """The refresh of this server. Every method is safe to call from any thread."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _progress: Progress = field(default_factory=Progress)
    _ended_at: float = -LEAST_BETWEEN_S
    _thread: threading.Thread | None = None

    def progress(self) -> Progress:
        """How far the refresh is now."""
        with self._lock:
            return self._progress

    def start(self, names: Sequence[str] = (), *, is_decided: bool = False) -> str:
        """Start a refresh of all sources, or of `names`; returns why not, '' if it started. A
        source that a person has decided on is asked without a pause."""
        with self._lock:
            if self._progress.running:
                return "A refresh is at work already."
            if not is_decided and time.monotonic() - self._ended_at < LEAST_BETWEEN_S:
                return "The last refresh ended less than a minute ago: price servers say no."
            sources = chosen(names)
            self._progress = Progress(running=True, total=len(sources))
            self._thread = threading.Thread(
                target=self._run, args=(sources,), name="refresh prices", daemon=True
            )
            self._thread.start()
        return ""

    def wait(self, timeout_s: float) -> None:
        """Wait until the refresh has ended; used by tests and when the server stops."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _ended(self, one: Fetched, ended: int, total: int) -> None:
        outcome = f"{one.status}, {len(one.offers):,} prices in {one.seconds:.1f} s"
        with self._lock:
            self._progress = replace(
                self._progress,
                total=total,
                ended=(*self._progress.ended, (one.source.name, one.sentence or outcome)),
            )

    def _run(self, sources: Sequence[Source]) -> None:
        # Whatever happens, the page must not wait forever for a thread that has died.
        sentence, failed = "A fault of this program ended the refresh: see the server's log.", True
        try:
            report = refresh(sources, progress=self._ended)
            sentence, failed = report_sentence(report), report.failed
        except RuncastError as e:  # another process holds the lease, or a file is damaged
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
    """The outcome of a refresh in a sentence."""
    if report.failed:
        return f"No source answered: price snapshot {report.snapshot_id} stays in use."
    part = " Some sources failed, or a part of one: see the list." if report.partial else ""
    held = len(report.quarantined)
    return (
        f"{report.offers:,} prices are published as price snapshot {report.snapshot_id}; "
        f"{held:,} {'row is' if held == 1 else 'rows are'} held back.{part}"
    )
