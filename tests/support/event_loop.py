"""Run a coroutine where the thread's own event loop may be busy."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def run(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """The result of a coroutine, run in a thread of its own: the browser that other tests of this
    process share keeps the event loop of theirs running."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
