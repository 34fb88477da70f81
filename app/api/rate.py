"""How often one address may ask: so many requests a second on average, so many at once."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

PER_S = 5.0
AT_ONCE = 20.0
MOST_ADDRESSES = 10_000  # the ones that asked last


class Rate:
    """A bucket of requests for each address, filled with time."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, address: str) -> float:
        """0 if the address may ask now, and the request counts; else seconds until it may."""
        now = self._now()
        with self._lock:
            left, since = self._left.pop(address, (AT_ONCE, now))
            left = min(AT_ONCE, left + (now - since) * PER_S)
            allowed = left >= 1.0
            self._left[address] = (left - 1.0 if allowed else left, now)
            if len(self._left) > MOST_ADDRESSES:
                self._left.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / PER_S
