"""gzip and zip from outside, unpacked no further than a bound."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator

from hardware.outside.json_text import OutsideError

PIECE_BYTES = 65_536  # unpacked at a time
MOST_TIMES = 200  # unpacked over packed, of what unpacks to more than SMALL_BYTES
SMALL_BYTES = 4_000_000
GZIP = b"\x1f\x8b"
_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, RuntimeError, EOFError,
            OSError, LookupError)  # fmt: skip


def gunzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Unpacked gzip with all of its members, in bounded pieces."""
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    started = False
    try:
        for chunk in chunks:
            left = chunk
            while left:
                if stream.eof:
                    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
                started = True
                piece = stream.decompress(left, PIECE_BYTES)
                left = stream.unused_data if stream.eof else stream.unconsumed_tail
                if piece:
                    yield piece
            while not stream.eof and (piece := stream.decompress(b"", PIECE_BYTES)):
                yield piece
    except zlib.error as e:
        raise OutsideError(f"is damaged gzip ({e})") from None
    if started and not stream.eof:
        raise OutsideError("is gzip that ends too early")


def unpacked(content: bytes, most_bytes: int) -> bytes:
    """What a gzip file holds; other content as it is. OutsideError for more than the bound, and for
    a file that unpacks to hundreds of times its size."""
    if not content.startswith(GZIP):
        return content
    found = bytearray()
    for piece in gunzipped([content]):
        found += piece
        if len(found) > most_bytes:
            raise OutsideError(f"holds more than {most_bytes // 10**6} MB")
        if len(found) > max(SMALL_BYTES, MOST_TIMES * len(content)):
            raise OutsideError(f"unpacks to more than {MOST_TIMES} times its size")
    return bytes(found)


def zip_member(data: bytes, suffix: str, most_bytes: int) -> bytes:
    """The single member of a zip with this suffix."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [i for i in archive.infolist() if i.filename.endswith(suffix)]
            if len(names) != 1:
                raise OutsideError(f"is a zip with {len(names)} files named *{suffix}, not one")
            with archive.open(names[0]) as member:
                found = member.read(most_bytes + 1)
    except OutsideError:
        raise
    except _DAMAGED as e:  # damaged bytes raise other errors than BadZipFile, too
        raise OutsideError(f"is a damaged zip ({type(e).__name__})") from None
    if len(found) > most_bytes:
        raise OutsideError(f"is a zip whose file is larger than {most_bytes / 1e6:g} MB")
    return found
