"""A cache of answers by question, filled by searches in the background.

A search goes on while a session waits for it; when the last one has gone it ends, and leaves its
turn to others. Cheap searches come first, and a session has one costly search at a time, so nobody
waits behind what nobody wants. A thread is enough, because numpy releases the GIL while it computes
(docs/speed.md has the figures).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from app.log import log
from core.errors import RuncastError
from core.search.plan import Answer
from hardware.outside import interrupt

LEFT_S = 0.4  # how long a session that begins anew may take to ask for the same again
LOOK_S = 0.05  # between two looks at who is still there, while anybody waits
ANYBODY = ""  # a session that never goes
FOR_GOOD = float("inf")
FIRST_S = 2.0  # of a search of one unit of work, before any has been timed
AHEAD_S = 10.0  # how much later than a search of one unit one of none may come, and still go first


class BusyError(RuncastError):
    """More searches are waiting than the server takes."""


class UnwantedError(Exception):
    """Nobody waits for this search any more."""


@dataclass(slots=True, eq=False)
class _Search:
    """One question, who waits for its answer, and where it stands."""

    key: Hashable
    call: Callable[[], Answer]
    work: float  # estimated, in units of the costliest usual question
    asked_at: float
    waiting: dict[str, float] = field(default_factory=dict)  # session: until when it counts
    found: Future[Answer] = field(default_factory=Future)
    until: float = float("inf")  # by time.monotonic(); not before its end
    began: float = 0.0  # 0: it waits for its turn
    looked: float = 0.0
    is_ended: bool = False  # nobody waits for it: whoever asks again gets a new one
    num_bytes: int = 0
    is_kept: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How busy the searches are now, and how often a question found one since the start."""

    waiting: int
    running: int
    kept: int
    kept_bytes: int
    hits: int
    misses: int


class Searches:
    """Answers of the last `keep_s` seconds, at most `most` and `most_bytes`. A failure is kept for
    `failed_s`: every waiting session gets the error, and a later one can try again.

    `at_once` searches run at the same time; of those with more work than a lane says, at most as
    many as it says, and of those of the first lane, the costly ones, one a session. `most_waiting`
    wait. `is_here` says whether a session is still connected, `size` how many bytes an answer
    holds; `after` is called when the last search has ended.
    """

    def __init__(
        self,
        *,
        most: int,
        keep_s: float,
        failed_s: float,
        at_once: int,
        most_bytes: float = float("inf"),
        lanes: Sequence[tuple[float, int]] = (),
        most_waiting: int = 1_000,
        is_here: Callable[[str], bool] = lambda session: True,
        size: Callable[[Answer], int] = lambda answer: 0,
        after: Callable[[], object] = lambda: None,
    ) -> None:
        self._most, self._keep_s, self._failed_s = most, keep_s, failed_s
        self._most_bytes, self._at_once = most_bytes, at_once
        self._lanes = tuple(lanes) or ((0.0, at_once),)
        self._cheap, self._costly_at_once = self._lanes[0]
        self._most_waiting = most_waiting
        self._is_here, self._size, self._after = is_here, size, after
        self._asked: OrderedDict[Hashable, _Search] = OrderedDict()
        self._queue: list[_Search] = []
        self._running: list[_Search] = []
        self._s_per_work = FIRST_S
        self._hits = self._misses = 0
        self._lock = threading.RLock()

    def ask(
        self,
        key: Hashable,
        search: Callable[[], Any],
        *,
        session: str = ANYBODY,
        work: float = 0.0,
        most_waiting: int | None = None,
        is_kept: bool = True,
    ) -> Future[Any]:
        """A future of the answer. `search` runs only if the question is not known and nobody else
        asked it; BusyError if too many are waiting, `most_waiting` if it is given. What is not
        kept may be any object."""
        now = time.monotonic()
        with self._lock:
            held = self._asked.get(key)
            if held is not None and (held.is_ended or (held.found.done() and now >= held.until)):
                held = None
            if held is not None:
                self._hits += 1
            else:
                self._misses += 1
                self._drop_unwanted(now)
                if len(self._queue) >= (most_waiting or self._most_waiting):
                    raise BusyError(
                        f"The server is busy: {len(self._queue)} searches are waiting. Try again "
                        f"in about {self._wait_s(self._queue):.0f} s."
                    )
                held = _Search(key, log.carried(search), work, now, is_kept=is_kept)
                self._asked[key] = held
                self._queue.append(held)
            for other in (*self._queue, *self._running):
                if other.waiting.get(session, FOR_GOOD) < FOR_GOOD:  # of an earlier run
                    del other.waiting[session]
            held.waiting[session] = FOR_GOOD
            self._asked.move_to_end(key)
            self._forget()
            self._start()
        return held.found

    def leave(self, session: str) -> None:
        """A session begins anew: what it does not ask for again within a moment is unwanted."""
        until = time.monotonic() + LEFT_S
        with self._lock:
            for search in (*self._queue, *self._running):
                if session in search.waiting:
                    search.waiting[session] = until

    def load(self) -> Load:
        """How busy they are now."""
        with self._lock:
            kept = [s for s in self._asked.values() if s.found.done()]
            return Load(
                waiting=len(self._queue), running=len(self._running), kept=len(kept),
                kept_bytes=sum(s.num_bytes for s in kept), hits=self._hits, misses=self._misses,
            )  # fmt: skip

    def is_running(self, key: Hashable) -> bool:
        """Whether a search for the question is still running, or waits for its turn."""
        with self._lock:
            self._look(time.monotonic())
            held = self._asked.get(key)
            return held is not None and not held.found.done()

    def turn(self, key: Hashable) -> str:
        """One sentence while the search for a question waits for its turn; '' otherwise."""
        with self._lock:
            self._look(time.monotonic())
            held = self._asked.get(key)
            if held is None or held not in self._queue:
                return ""
            before = sorted(self._queue, key=_rank).index(held)
            wait_s = self._wait_s([s for s in self._queue if _rank(s) < _rank(held)])
        place = "yours is next" if not before else f"{before} searches are before yours"
        return f"Busy: {place}, about {max(1.0, wait_s):.0f} s."

    # --- turns: everything below holds the lock ---

    def _wait_s(self, before: list[_Search]) -> float:
        """Seconds until the searches that run and those before are done."""
        work = sum(s.work for s in (*self._running, *before))
        return work * self._s_per_work / max(1, self._costly_at_once)

    def _look(self, now: float) -> None:
        """Drop what nobody waits for, and give the free turns away."""
        self._drop_unwanted(now)
        self._start()

    def _drop_unwanted(self, now: float) -> None:
        for search in list(self._queue):
            if self._is_unwanted(search, now):
                self._end(search)

    def _is_unwanted(self, search: _Search, now: float) -> bool:
        """Whether every session that asked has gone, or asks for something else now."""
        return not any(
            now < until and (session == ANYBODY or self._is_here(session))
            for session, until in search.waiting.items()
        )

    def _end(self, search: _Search) -> None:
        """Forget a search that nobody wants, so that who asks again gets a new one."""
        search.is_ended = True
        if search in self._queue:
            self._queue.remove(search)
            search.found.cancel()
        if self._asked.get(search.key) is search:
            del self._asked[search.key]

    def _start(self) -> None:
        """Start what may run, the cheapest first."""
        for search in sorted(self._queue, key=_rank):
            if len(self._running) >= self._at_once:
                return
            if self._may_run(search):
                self._queue.remove(search)
                self._running.append(search)
                search.began = time.monotonic()
                threading.Thread(
                    target=self._run, args=(search,), name="search", daemon=True
                ).start()

    def _may_run(self, search: _Search) -> bool:
        for more_than, most in self._lanes:
            busy = [s for s in self._running if s.work > more_than]
            if search.work > more_than and len(busy) >= most:
                return False
        if search.work <= self._cheap:
            return True
        costly = [s for s in self._running if s.work > self._cheap]
        theirs = {session for s in costly for session in s.waiting}
        mine = search.waiting.keys() - {ANYBODY}
        return not mine or not mine <= theirs

    # --- in the thread of a search ---

    def _run(self, search: _Search) -> None:
        search.found.set_running_or_notify_cancel()
        answer: Answer | None = None
        error: BaseException | None = None
        try:
            with interrupt.checked_by(lambda: self._check(search)):
                answer = search.call()
        except BaseException as e:  # noqa: BLE001 - it is the error of everybody who waits
            error = e.with_traceback(None) if isinstance(e, UnwantedError) else e
        num_bytes = self._size(answer) if answer is not None and search.is_kept else 0
        with self._lock:
            now = time.monotonic()
            self._running.remove(search)
            search.num_bytes = num_bytes
            search.until = now + (self._keep_s if error is None else self._failed_s)
            if error is None and search.work > self._cheap:
                took_s = (now - search.began) / search.work
                self._s_per_work += 0.2 * (took_s - self._s_per_work)
            if error is not None:
                search.found.set_exception(error)
            elif answer is not None:
                search.found.set_result(answer)
            if not search.is_kept and self._asked.get(search.key) is search:
                del self._asked[search.key]
            self._forget()
            self._look(now)
            is_idle = not self._running
        if is_idle:
            self._after()

    def _check(self, search: _Search) -> None:
        """UnwantedError if nobody waits for the search any more. Looks after the queue, too."""
        now = time.monotonic()
        if now - search.looked < LOOK_S:
            return
        search.looked = now
        with self._lock:
            is_unwanted = self._is_unwanted(search, now)
            if is_unwanted:
                self._end(search)
            self._drop_unwanted(now)
        if is_unwanted:
            raise UnwantedError

    def _forget(self) -> None:
        """Forget the oldest answers beyond the bounds; what somebody waits for is kept."""
        done = [s for s in self._asked.values() if s.found.done()]
        num_bytes = sum(s.num_bytes for s in done)
        for search in done[:-1]:
            if len(self._asked) <= self._most and num_bytes <= self._most_bytes:
                return
            num_bytes -= search.num_bytes
            del self._asked[search.key]


def _rank(search: _Search) -> float:
    """Cheap searches first, but not for ever."""
    return search.asked_at + AHEAD_S * search.work
