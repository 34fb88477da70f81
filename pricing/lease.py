"""Lease of the price folder: one refresh at a time, by a lock and a rising number.

The lock is the kernel's, so a killed process leaves nothing behind. The number protects where the
lock cannot: a folder that was moved or emptied under a refresh, or a file system without locks.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from core.errors import RuncastError
from hardware.outside.json_text import LINE, json_value
from pricing.disk import private_folder

RECORD_BYTES = 512


class LeaseError(RuncastError):
    """Another refresh is running, or this one has lost its right to publish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to publish in a folder."""

    path: Path
    token: int
    inode: int

    def check(self) -> None:
        """`LeaseError` unless the lock file is still ours: checked right before publishing."""
        try:
            held = self.path.stat().st_ino == self.inode and _written(self.path)[0] == self.token
        except OSError:
            held = False
        if not held:
            raise LeaseError("Another refresh has begun meanwhile: this one publishes nothing.")


@contextmanager
def lease(folder: Path, *, wait_s: float = 0.0) -> Iterator[Lease]:
    """Hold the folder for one refresh; LeaseError names a holder that does not end in `wait_s`."""
    private_folder(folder)
    path = folder / "lease"
    try:
        lock = FileLock(folder / "lease.lock", timeout=wait_s, mode=0o600).acquire()
    except Timeout:
        raise LeaseError(f"Another refresh works{_written(path)[1]}.") from None
    with lock:
        token = _written(path)[0] + 1
        who = {
            "token": token,
            "process": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        # One write of fixed size: a process that is killed here leaves the old number or the new.
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.write(handle, json.dumps(who).ljust(RECORD_BYTES).encode())
            inode = os.fstat(handle).st_ino
        finally:
            os.close(handle)
        yield Lease(path=path, token=token, inode=inode)


def _written(path: Path) -> tuple[int, str]:
    """The number of the last lease, and its holder, if the file has one."""
    try:
        who = json_value(path.read_bytes(), LINE)
        return int(who["token"]), f" (process {who['process']} on {who['host']}, {who['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""
