"""Answers by their questions: searched in the background, once for everybody, kept for a while.

A search belongs to nobody: the session that asked first may be gone before it ends, and the next
one that asks the same finds it running or done. A thread is enough beside the page: numpy lets
others run while it computes (docs/speed.md has the figures).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from app.log import log
from core.search.plan import Answer


@dataclass(frozen=True, slots=True)
class _Asked:
    found: Future[Answer]
    until: float  # by time.monotonic()


class Searches:
    """At most `most` answers of the last `keep_s` seconds. What failed is kept for `failed_s`, so
    that everybody who waits for it hears why, and the next one may try again."""

    def __init__(self, *, most: int, keep_s: float, failed_s: float, at_once: int) -> None:
        self._most, self._keep_s, self._failed_s = most, keep_s, failed_s
        self._asked: OrderedDict[Hashable, _Asked] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="search")

    def ask(self, key: Hashable, search: Callable[[], Answer]) -> Future[Answer]:
        """The answer, or what will be the answer. `search` runs where nobody asked before."""
        now = time.monotonic()
        with self._lock:
            held = self._asked.get(key)
            if held is not None and now < self._end(held, now):
                self._asked.move_to_end(key)
                return held.found
            found = self._pool.submit(log.carried(search))
            self._asked[key] = _Asked(found, now + self._keep_s)
            self._asked.move_to_end(key)
            while len(self._asked) > self._most:
                self._asked.popitem(last=False)
        found.add_done_callback(lambda done: self._judge(key, done))
        return found

    def is_running(self, key: Hashable) -> bool:
        """Whether somebody's search of it has not ended."""
        with self._lock:
            held = self._asked.get(key)
        return held is not None and not held.found.done()

    def _end(self, held: _Asked, now: float) -> float:
        return held.until if held.found.done() else now + 1.0  # nobody starts a running one again

    def _judge(self, key: Hashable, done: Future[Answer]) -> None:
        """Shorten the life of an answer that is none."""
        if done.exception() is None:
            return
        with self._lock:
            held = self._asked.get(key)
            if held is not None and held.found is done:
                self._asked[key] = _Asked(done, time.monotonic() + self._failed_s)
