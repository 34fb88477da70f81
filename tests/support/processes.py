"""What the kernel says of processes: memory, processor time, files, threads, children, ports."""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Collection
from contextlib import suppress
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


def is_alive(pid: int) -> bool:
    """Whether a process is there that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids: Collection[int], within_s: float) -> bool:
    """Whether all of these processes have ended, soon."""
    end = time.monotonic() + within_s
    while time.monotonic() < end and any(map(is_alive, pids)):
        time.sleep(0.05)
    return not any(map(is_alive, pids))


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
