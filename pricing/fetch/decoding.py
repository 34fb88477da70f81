"""Strict, bounded decoding of price feeds: gzip, zip, text, JSON, CSV.

A gzip body of 2 MB can hold 2 GiB, so decompression stops at the size cap. What is read is bounded
by hardware/outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from core.errors import shown
from hardware.outside import csv_text, packed
from hardware.outside.json_text import Bounds, OutsideError, json_value
from pricing.fetch.network import SourceError

LINE_BYTES = 1_000_000
# Values in one JSON text: each becomes an object of some hundred bytes, however short its text.
MAX_VALUES = 3_000_000
JSON_BOUNDS = Bounds(num_bytes=256_000_000, values=MAX_VALUES, keys=200_000)


def inflated(chunks: Iterable[bytes], encoding: str, cap_bytes: int) -> Iterator[bytes]:
    """The decoded body, in chunks; `SourceError` as soon as it exceeds the cap."""
    name = encoding.strip().lower()
    if name not in ("", "identity", "gzip", "x-gzip"):
        raise SourceError(f"The body is encoded as {shown(encoding)}; plain and gzip are read.")
    pieces = packed.gunzipped(chunks) if "gzip" in name else chunks
    size_bytes = 0
    try:
        for piece in pieces:
            size_bytes += len(piece)
            if size_bytes > cap_bytes:
                raise SourceError(f"The body is larger than {cap_bytes / 1e6:g} MB.")
            yield piece
    except OutsideError as e:
        raise SourceError(f"The body {e.clause}.") from None


def lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines of UTF-8 text, without line ends, with only one line in memory."""
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield _text(line).rstrip("\r")
        if len(rest) > LINE_BYTES:
            raise SourceError(f"A line is longer than {LINE_BYTES / 1e6:g} MB.")
    if rest:
        yield _text(rest).rstrip("\r")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError("The body is not UTF-8 text.") from None


def text(data: bytes) -> str:
    """A whole body as UTF-8 text; a web page instead of data is refused."""
    found = _text(data)
    if found[:200].lstrip().lower().startswith(("<!doctype html", "<html")):
        raise SourceError("The body is a web page (HTML), not data.")
    return found


def strict_json(data: bytes | str) -> Any:
    """JSON without duplicate keys, NaN or infinity."""
    body = text(data) if isinstance(data, bytes) else data
    try:
        return json_value(body, JSON_BOUNDS)
    except OutsideError as e:
        raise SourceError(f"The body {e.clause}.") from None


def csv_rows(text_lines: Iterable[str], needed: Iterable[str]) -> Iterator[dict[str, str]]:
    """Rows of a CSV whose header has the needed columns, in any order and with others."""
    try:
        table = csv_text.csv_rows(text_lines, strict=True)
        _, header = next(table, (0, []))
        if missing := [c for c in needed if c not in header]:
            raise SourceError(
                f"The CSV has no column {missing[0]}: its header is {shown(','.join(header))}."
            )
        csv_text.check_header(header)
        for line, cells in table:
            if not cells:
                continue
            if len(cells) != len(header):
                raise SourceError(f"Line {line} of the CSV has {len(cells)} cells.")
            yield dict(zip(header, cells, strict=True))
    except OutsideError as e:
        raise SourceError(f"The body {e.clause}.") from None


def zip_member(data: bytes, suffix: str, cap_bytes: int) -> bytes:
    """The single member of a zip with this suffix, unpacked at most to the cap."""
    try:
        return packed.zip_member(data, suffix, cap_bytes)
    except OutsideError as e:
        raise SourceError(f"The body {e.clause}.") from None
