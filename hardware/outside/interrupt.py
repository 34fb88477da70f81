"""End long work of a thread: a check that parsers and searches call often.

It raises when the time of the work is up, or nobody waits for it any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Clock(threading.local):
    check: Callable[[], object] | None = None


_CLOCK = _Clock()


@contextmanager
def checked_by(check: Callable[[], object]) -> Iterator[None]:
    """In the block, long work of this thread calls `check` often, which raises to end it."""
    before, _CLOCK.check = _CLOCK.check, check
    try:
        yield
    finally:
        _CLOCK.check = before


@contextmanager
def processor_seconds(most_s: float, error: Callable[[], Exception]) -> Iterator[None]:
    """In the block, `error()` is raised once this thread has computed for `most_s`."""
    over = time.thread_time() + most_s

    def check() -> None:
        if time.thread_time() > over:
            raise error()

    with checked_by(check):
        yield


def check() -> None:
    """Raise if the work of this thread is to end."""
    if _CLOCK.check is not None:
        _CLOCK.check()
