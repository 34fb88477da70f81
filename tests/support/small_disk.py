"""A disk of a few megabytes that a test may fill, empty and make read-only: a tmpfs, for root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SIZE = "8m"


@dataclass(frozen=True, slots=True)
class Disk:
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def fill(self) -> None:
        """Write until the kernel refuses the smallest file."""
        with (self.folder / "filler").open("wb", buffering=0) as file:
            for size in (2**16, 2**12, 1):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError:
                    continue

    def empty(self) -> None:
        (self.folder / "filler").unlink()

    def remount(self, how: str) -> None:
        """`ro` or `rw`."""
        subprocess.run(["mount", "-o", f"remount,{how}", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[Disk]:
    """A disk on that folder; a test that cannot have one is skipped."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "runcast-test", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
