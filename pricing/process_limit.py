"""Limits that the kernel keeps for this process: seconds on the clock, and memory."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path


def limit(left_s: float, memory_bytes: int) -> None:
    """Let the kernel end this process after its time, and refuse it more memory than its own."""
    if not hasattr(signal, "setitimer"):
        end = threading.Timer(max(0.0, left_s), os._exit, (1,))
        end.daemon = True
        end.start()
        return
    signal.setitimer(signal.ITIMER_REAL, max(0.001, left_s))
    import resource

    most = _held_bytes() + memory_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    with suppress(OSError, ValueError):  # a sandbox may forbid it: then its own limit holds
        resource.setrlimit(
            resource.RLIMIT_DATA, (most, most) if hard < 0 else (min(most, hard), hard)
        )


def _held_bytes() -> int:
    """What this process has allocated already."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[5]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
