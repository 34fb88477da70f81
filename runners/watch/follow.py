"""Lines that a file gets while it grows, is rotated, cut or replaced.

Memory is that of one chunk: a longer line loses its end, which no figure is in. A file that was
moved away is read to its end before the new one of its name is opened. NUL bytes are dropped: a
program that does not append leaves them before its position when its log is cut.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self

from runners.imports.text import MAX_LINE, ImportFileError, clean

CHUNK = 1 << 18
_ENDS = re.compile(rb"[\r\n]+")
_KEPT = 4 * MAX_LINE  # bytes of a line without an end: a character has at most four


@dataclass(slots=True, kw_only=True)
class Tail:
    """One followed file. `lines` gives what came since it was last asked."""

    path: Path
    num_rotations: int = 0
    num_cuts: int = 0
    num_long: int = 0  # lines that lost their end
    _file: BinaryIO | None = field(default=None, repr=False)
    _inode: int = 0
    _rest: bytes = b""
    _skips: bool = False  # inside a line that lost its end

    def lines(self, *, is_last: bool = False) -> Iterator[str]:
        """Lines with an end since the last call, and with `is_last` the one without."""
        if self._file is None and not self._open():
            return
        yield from self._chunks()
        if self._is_replaced():
            yield from self._ended()
            self.close()
            self.num_rotations += 1
            if self._open():
                yield from self._chunks()
        if is_last:
            yield from self._ended()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next call of `lines` opens what has its name then."""
        if self._file is not None:
            self._file.close()
        self._file, self._rest, self._skips = None, b"", False

    def _open(self) -> bool:
        if not self.path.exists():
            return False
        if not self.path.is_file():  # a pipe or device would block or never end
            raise ImportFileError(f"{self.path.name} is not a file.")
        try:
            self._file = self.path.open("rb", buffering=0)
            self._inode = self._stat()
        except OSError as e:
            raise ImportFileError(f"{self.path.name} cannot be read: {e.strerror}.") from None
        return True

    def _stat(self) -> int:
        return self.path.stat().st_ino

    def _is_replaced(self) -> bool:
        with suppress(OSError):  # moved away, and not yet made anew: the old one may still grow
            return self._stat() != self._inode
        return False

    def _chunks(self) -> Iterator[str]:
        file = self._file
        if file is None:
            return
        if os.fstat(file.fileno()).st_size < file.tell():
            self.num_cuts += 1
            self._rest, self._skips = b"", False
            file.seek(0)
        while chunk := file.read(CHUNK):
            yield from self._of(chunk)

    def _of(self, chunk: bytes) -> Iterator[str]:
        *whole, rest = _ENDS.split(chunk.translate(None, b"\0") if b"\0" in chunk else chunk)
        for piece in whole:
            text, self._rest = self._rest + piece, b""
            if self._skips:
                text, self._skips = b"", False
            if text.strip():
                yield decoded(text)
        self._rest += rest
        if len(self._rest) > _KEPT:
            if not self._skips:
                self.num_long += 1
                yield decoded(self._rest)
            self._rest, self._skips = b"", True

    def _ended(self) -> Iterator[str]:
        text, self._rest = self._rest, b""
        if text.strip() and not self._skips:
            yield decoded(text)


def decoded(text: bytes) -> str:
    """The part of a line that is read, as text that is safe on a terminal."""
    return clean(text[:_KEPT].decode("utf-8", errors="replace"))
