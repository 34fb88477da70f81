"""A disk whose power can be cut: an ext4 file system in a file, mounted by the kernel.

`cut` lets ext4 forget at once whatever was not flushed to it, its journal included, as a machine
does whose power fails; it is then mounted again, which replays the journal. It takes root and loop
devices.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHUTDOWN, NO_FLUSH = 0x8004587D, 2  # EXT4_IOC_SHUTDOWN; EXT4_GOING_FLAGS_NOLOGFLUSH
SIZE_BYTES = 256 * 2**20


class Disk:
    """A mounted file system; `place` is its root."""

    def __init__(self, folder: Path) -> None:
        self._image, self.place = folder / "disk.img", folder / "disk"
        self.place.mkdir()
        with self._image.open("wb") as image:
            image.truncate(SIZE_BYTES)
        _run("mkfs.ext4", "-q", "-F", self._image)
        self._mount()

    def cut(self) -> None:
        """Forget what was not flushed; nothing can be read or written until `restore`."""
        handle = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NO_FLUSH))
        finally:
            os.close(handle)

    def restore(self) -> None:
        """The power is back."""
        self.remove()
        self._mount()

    def remove(self) -> None:
        _run("umount", self.place)

    def _mount(self) -> None:
        # Nothing is written back meanwhile but what a program flushes.
        _run("mount", "-o", "loop,commit=300", self._image, self.place)


def _run(*words: object) -> None:
    subprocess.run([str(w) for w in words], check=True, capture_output=True)


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """A disk in a folder; OSError where this machine has none of the tools or rights."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("mkfs.ext4", "mount", "umount"))):
        raise OSError("mounting a file system takes root and mkfs.ext4")
    try:
        made = Disk(folder)
    except subprocess.CalledProcessError as e:
        raise OSError(e.stderr.decode(errors="replace")) from None
    try:
        yield made
    finally:
        made.remove()
