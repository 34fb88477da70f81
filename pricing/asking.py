"""Ask every price source at the same time; a failure of one does not affect the others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from core.machine.offer import Offer
from pricing.fetch.body_cache import BodyCache
from pricing.fetch.network import SourceError
from pricing.fetch.session import NoCredentialError, Part, Refused, Session
from pricing.offers import MAX_ROWS
from pricing.sources import Source

MAX_OFFERS = 120_000  # of one source
MAX_LIVE = MAX_ROWS // 2  # of all sources: rows kept from before need room, too
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
    """Fetch every source in a thread of its own, so that they wait for their servers
    concurrently."""
    found: dict[str, Fetched] = {}
    stop = threading.Event()  # so that Ctrl-C waits for one read, not for a deadline
    with ThreadPoolExecutor(max_workers=max(1, len(sources))) as pool, _set_at_the_end(stop):
        running = {
            pool.submit(_fetch, s, environ, caches, len(last[s.name]), now, stop): s
            for s in sources
        }
        for future in as_completed(running):
            one = _ended(future, running[future])
            found[one.source.name] = one
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


def _ended(future: Future[Fetched], source: Source) -> Fetched:
    """The result of a thread. A bug in one source must not affect the others."""
    error = future.exception()
    if error is None:
        return future.result()
    log.error("the source %s has a fault", source.name, exc_info=error)
    sentence = f"A fault of this program, not of the source: {type(error).__name__}."
    return Fetched(source=source, status="failed", sentence=sentence)


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
                found.offers = list(islice(source.fetch(session), MAX_OFFERS + 1))
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
