"""Ask every price source at the same time; a failure of one does not affect the others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, Queue

from core.machine.offer import Offer
from hardware.outside.interrupt import checked_by
from pricing.fetch.body_cache import BodyCache
from pricing.fetch.network import SourceError
from pricing.fetch.session import NoCredentialError, Part, Refused, Session
from pricing.offers import MAX_ROWS
from pricing.sources import Source

MAX_OFFERS = 120_000  # of one source
MAX_LIVE = MAX_ROWS // 2  # of all sources: rows kept from before need room, too
LATE_S = 0.5  # after its deadline a source has ended by itself, or is left behind
log = logging.getLogger("runcast.refresh")


@dataclass(slots=True, kw_only=True)
class Fetched:
    """The rows of one source, or why there are none."""

    source: Source
    offers: list[Offer] = field(default_factory=list)
    status: str = "refreshed"
    sentence: str = ""
    seconds: float = 0.0
    bytes_read: int = 0
    parts: list[Part] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    left_out: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


# a source that is done, how many are done, of how many
Progress = Callable[[Fetched, int, int], None]


def ask(
    sources: Sequence[Source],
    environ: Mapping[str, str],
    caches: Path | None,
    last: Mapping[str, Sequence[Offer]],
    progress: Progress | None,
    now: Callable[[], datetime],
) -> list[Fetched]:
    """Fetch every source in a thread of its own, so that they wait for their servers concurrently.
    One that goes on after its deadline is left behind: nobody waits for it."""
    found: dict[str, Fetched] = {}
    stop = threading.Event()  # so that Ctrl-C waits for one read, not for a deadline
    ended: Queue[Fetched] = Queue()
    waiting = {s.name: (s, time.monotonic() + s.deadline_s + LATE_S) for s in sources}
    with _set_at_the_end(stop):
        for s in sources:
            call = partial(_fetched, s, environ, caches, len(last[s.name]), now, stop, ended)
            threading.Thread(target=call, name=f"source {s.name}", daemon=True).start()
        while waiting:
            for one in _next(ended, waiting):
                found[one.source.name] = one
                del waiting[one.source.name]
                if progress is not None:
                    progress(one, len(found), len(sources))
    answers = [found[s.name] for s in sources]
    _drop_the_largest(answers)
    return answers


def _drop_the_largest(answers: list[Fetched]) -> None:
    """Refuse the longest lists while there are more prices than a snapshot may hold, so that the
    other sources can be published."""
    while sum(len(f.offers) for f in answers) > MAX_LIVE:
        largest = max(answers, key=lambda f: len(f.offers))
        largest.sentence = f"It lists {len(largest.offers)} prices, too many for one snapshot."
        largest.status, largest.offers = "failed", []


@contextmanager
def _set_at_the_end(event: threading.Event) -> Iterator[None]:
    try:
        yield
    finally:
        event.set()


def _next(ended: Queue[Fetched], waiting: Mapping[str, tuple[Source, float]]) -> Sequence[Fetched]:
    """The next source that is done, or those that do not end."""
    first = min(until for _, until in waiting.values())
    with suppress(Empty):
        while (one := ended.get(timeout=max(0.0, first - time.monotonic()))) is not None:
            if one.source.name in waiting:  # not one that was left behind
                return [one]
    late = [s for s, until in waiting.values() if until <= time.monotonic()]
    return [
        Fetched(
            source=s,
            status="failed",
            sentence=f"It took longer than its {s.deadline_s:g} s.",
            seconds=s.deadline_s + LATE_S,
        )
        for s in late
    ]


def _fetched(
    source: Source,
    environ: Mapping[str, str],
    caches: Path | None,
    last_rows: int,
    now: Callable[[], datetime],
    stop: threading.Event,
    ended: Queue[Fetched],
) -> None:
    """Put the result of a source into `ended`. A bug in one source must not affect the others."""
    try:
        ended.put(_fetch(source, environ, caches, last_rows, now, stop))
    except BaseException as e:
        log.error("the source %s has a fault", source.name, exc_info=e)
        sentence = f"A fault of this program, not of the source: {type(e).__name__}."
        ended.put(Fetched(source=source, status="failed", sentence=sentence))


def _fetch(
    source: Source,
    environ: Mapping[str, str],
    caches: Path | None,
    last_rows: int,
    now: Callable[[], datetime],
    stop: threading.Event,
) -> Fetched:
    """Ask one source; every way in which it can fail is a sentence."""
    began = time.monotonic()
    found = Fetched(source=source)
    try:
        with Session(
            source=source.name,
            deadline_s=source.deadline_s,
            cap_bytes=source.cap_bytes,
            cache=BodyCache(caches / source.name) if caches else None,
            environ=environ,
            now=now,
            stop=stop,
        ) as session:
            try:
                with checked_by(session.check):
                    for offer in islice(source.fetch(session), MAX_OFFERS + 1):
                        session.check()
                        found.offers.append(offer)
            finally:
                found.parts = session.parts
                found.refused = session.refused
                found.left_out = dict(session.left_out)
                found.warnings = tuple(session.warnings)
                found.bytes_read = session.bytes_read
        if len(found.offers) > MAX_OFFERS:
            found.offers = []
            raise SourceError(f"It lists more than {MAX_OFFERS} prices.")
        if not found.offers:
            why = f"It lists 0 prices where there were {last_rows}."
            found.status = "failed"
            found.sentence = found.parts[0].sentence if found.parts else why
        elif found.parts:
            found.status = "in part"
            more = f" (and {len(found.parts) - 1} more parts)" if len(found.parts) > 1 else ""
            found.sentence = found.parts[0].sentence + more
    except NoCredentialError as e:
        found.status, found.sentence = "no key", str(e)
    except SourceError as e:
        found.status, found.sentence = "failed", str(e)
    except OSError as e:  # of the cache: a full disk, a folder without permission
        found.status, found.sentence = "failed", f"Its cache cannot be written: {e.strerror}."
    found.seconds = time.monotonic() - began
    return found
