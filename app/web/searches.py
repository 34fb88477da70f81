"""A cache of answers by question, filled by searches in the background.

No session owns a search: the one that asked first may be gone before it ends, and the next one with
the same question finds it running or done. A thread is enough, because numpy releases the GIL while
it computes (docs/speed.md has the figures).
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
    until: float  # by time.monotonic(); a search that is still running never expires


class Searches:
    """At most `most` answers of the last `keep_s` seconds. A failure is kept for `failed_s`: every
    waiting session gets the error, and a later one can try again."""

    def __init__(self, *, most: int, keep_s: float, failed_s: float, at_once: int) -> None:
        self._most, self._keep_s, self._failed_s = most, keep_s, failed_s
        self._asked: OrderedDict[Hashable, _Asked] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(at_once, thread_name_prefix="search")

    def ask(self, key: Hashable, search: Callable[[], Answer]) -> Future[Answer]:
        """A future of the answer. `search` runs only if the question has not been asked before."""
        now = time.monotonic()
        with self._lock:
            held = self._asked.get(key)
            if held is not None and (not held.found.done() or now < held.until):
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
        """Whether a search for the question is still running."""
        with self._lock:
            held = self._asked.get(key)
        return held is not None and not held.found.done()

    def _judge(self, key: Hashable, done: Future[Answer]) -> None:
        """Shorten the life of a failure."""
        if done.exception() is None:
            return
        with self._lock:
            held = self._asked.get(key)
            if held is not None and held.found is done:
                self._asked[key] = _Asked(done, time.monotonic() + self._failed_s)
