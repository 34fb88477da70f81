"""What the kernel says of a running server: memory, processor time, open files, threads."""

from __future__ import annotations

import re
import time
from pathlib import Path

MIB = 2**20


def rss_bytes(pid: int) -> int:
    """Memory of a process that is in use now."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def cpu_s(pid: int) -> float:
    """Processor time of a process since it began, with that of threads that have ended.

    The clock of another process has its number from the pid: clock_getcpuclockid(3).
    """
    return time.clock_gettime((~pid << 3) | 2)


def num_files(pid: int) -> int:
    """Files, sockets and pipes that a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def num_threads(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
