"""Ask every price source at the same time; a failure of one does not affect the others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from queue import Empty, Queue

from core.machine.offer import Offer
from pricing.fetched import Fetched, fetched
from pricing.offers import MAX_ROWS
from pricing.source_process import answering, importable
from pricing.source_program import LATE_S
from pricing.sources import Source

MAX_LIVE = MAX_ROWS // 2  # of all sources: rows kept from before need room, too
log = logging.getLogger("runcast.refresh")

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
    """Ask all sources at once, each in a process of its own, or in a thread where its function is
    one that no other process can import. One that goes on after its deadline is left behind:
    nobody waits for it."""
    found: dict[str, Fetched] = {}
    stop = threading.Event()  # so that Ctrl-C waits for one read, not for a deadline
    ended: Queue[Fetched] = Queue()
    rows = {s.name: len(last[s.name]) for s in sources}
    apart = [s for s in sources if importable(s)]
    ask_apart = answering(
        apart, environ=environ, caches=caches, last_rows=rows, now=now,
        answered=partial(_put, ended),
    )  # fmt: skip
    with _set_at_the_end(stop), ask_apart:
        waiting = {s.name: (s, time.monotonic() + s.deadline_s + LATE_S) for s in sources}
        for s in sources:
            if s not in apart:
                cache = caches / s.name if caches else None
                call = partial(fetched, s, environ, cache, rows[s.name], now, stop=stop)
                threading.Thread(
                    target=_ask_here, args=(s, call, ended), name=f"source {s.name}", daemon=True
                ).start()
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


def _put(ended: Queue[Fetched], one: Fetched, fault: str) -> None:
    if fault:
        log.error("the source %s has a fault\n%s", one.source.name, fault)
    ended.put(one)


def _ask_here(source: Source, call: Callable[[], Fetched], ended: Queue[Fetched]) -> None:
    """Put the result of a source into `ended`. A bug in one source must not affect the others."""
    try:
        ended.put(call())
    except BaseException as e:
        log.error("the source %s has a fault", source.name, exc_info=e)
        sentence = f"A fault of this program, not of the source: {type(e).__name__}."
        ended.put(Fetched(source=source, status="failed", sentence=sentence))
