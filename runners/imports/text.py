"""Bounded reader of text files from other tools: lines without colours.

Files are hostile until parsed. A file full of NUL bytes is not text. Bytes that cannot be decoded
become a replacement character, so that one broken line does not affect the others.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from core.errors import RuncastError, shown
from hardware.outside import packed
from hardware.outside.json_text import OutsideError
from hardware.outside.text import plain

MAX_BYTES = 50_000_000  # of the file, and of the content of a gzip file
MAX_LINE = 4_000  # characters of a line that are read: no figure is further right
CHUNK = 1 << 20
NUL_SHARE = 0.01
UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\^_])")
_LINE = re.compile(r"[\r\n]+")
# How mpirun, torchrun, srun and pdsh mark the rank of a line.
_RANK = re.compile(
    r"^\s*(?:\[(?P<mpi>\d+,\d+)\]<std(?:out|err)>:|\[(?:default|rank)?(?P<torch>\d+)\]:|"
    r"(?P<srun>\d+): )\s?"
)


class ImportFileError(RuncastError):
    """A file of another tool cannot be used; the text is one sentence with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A file as lines, with its name and hash."""

    name: str
    sha256: str  # of the file as it is on the disk
    num_bytes: int
    lines: tuple[str, ...]


def read_bytes(path: Path) -> bytes:
    """The content of a file within the bound; ImportFileError for a larger one."""
    name = shown(str(path))
    if not path.is_file():  # a pipe or device would block or never end
        raise ImportFileError(f"{name} is not a file.")
    found = bytearray()
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                found += chunk
                if len(found) > MAX_BYTES:
                    raise ImportFileError(
                        f"{name} has more than {MAX_BYTES // 10**6} MB: cut out the part with the "
                        "figures, for example with `tail -c 40M`."
                    )
    except OSError as e:
        raise ImportFileError(f"{name} cannot be read: {e.strerror}.") from None
    return bytes(found)


def unpacked(content: bytes, name: str) -> bytes:
    """The content of a gzip file, within the bound; other content as it is."""
    try:
        return packed.unpacked(content, MAX_BYTES)
    except OutsideError as e:
        raise ImportFileError(
            f"{shown(name)} {e.clause}: it is read up to {MAX_BYTES // 10**6} MB of text."
        ) from None


def text_of(content: bytes, name: str) -> Text:
    """The lines of a content; ImportFileError if it is empty or not text."""
    found = unpacked(content, name)
    if not found.strip():
        raise ImportFileError(f"{shown(name)} is empty.")
    coding = UTF16.get(found[:2], "utf-8")
    if coding == "utf-8" and found.count(0) > NUL_SHARE * len(found):
        raise ImportFileError(f"{shown(name)} is a binary file, not the text that a tool prints.")
    text = found.decode(coding, errors="replace").removeprefix("\ufeff")
    lines = map(clean, _LINE.split(text))
    return Text(
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        num_bytes=len(content),
        lines=tuple(line for line in lines if line.strip()),
    )


def read_text(path: Path) -> Text:
    """The lines of a file; ImportFileError if it is not text."""
    return text_of(read_bytes(path), path.name)


def clean(line: str) -> str:
    """The part of a line that is read, without colours and what would command a terminal.

    >>> clean("\x1b[31mstep:\x1b[0m 3\x07")
    'step: 3?'
    """
    return plain(_ANSI.sub("", line[:MAX_LINE]))


def whose(line: str) -> tuple[str, str]:
    """The rank that a launcher prefixed to a line ('' if none), and the line without it.

    >>> whose("[rank3]:[titan] step: 10")
    ('3', '[titan] step: 10')
    """
    match = _RANK.match(line)
    if match is None:
        return "", line
    return next(g for g in match.groups() if g is not None), line[match.end() :]


def number(text: str) -> float | None:
    """A printed number, with commas between thousands; None if it is not a finite number.

    >>> number("5,762"), number("nan"), number("-")
    (5762.0, None, None)
    """
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < 1e300 else None


def positive(text: str) -> float | None:
    """`number`, if it is above zero."""
    value = number(text)
    return value if value is not None and value > 0 else None
