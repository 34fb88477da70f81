"""Fields of a protobuf message, by number: as much as event files of trackers need.

https://protobuf.dev/programming-guides/encoding: a key of number and wire type, then a varint (0),
8 bytes (1), a length and bytes (2) or 4 bytes (5).
"""

from __future__ import annotations

from collections.abc import Iterator

MOST_FIELDS = 10_000


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field: an int of a varint, else bytes. Ends where it is broken."""
    at = 0
    for _ in range(MOST_FIELDS):
        key, at = _varint(message, at)
        if key is None:
            return
        kind = key & 7
        if kind == 0:
            value, at = _varint(message, at)
            if value is None:
                return
            yield key >> 3, value
            continue
        size: int | None = {1: 8, 5: 4}.get(kind)
        if kind == 2:
            size, at = _varint(message, at)
        if size is None or at + size > len(message):
            return
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int | None, int]:
    value = 0
    for n in range(10):
        if at >= len(message):
            return None, at
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            return value, at
    return None, at
