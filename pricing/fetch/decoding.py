"""Strict, bounded decoding of price feeds: gzip, zip, text, JSON, CSV.

Python's JSON reader accepts NaN and the last of two equal keys, which are refused here. A gzip body
of 2 MB can hold 2 GiB, so decompression stops at the size cap.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from core.errors import shown
from pricing.fetch.network import SourceError

_DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, RuntimeError, EOFError,
            OSError, LookupError)  # fmt: skip
PIECE_BYTES = 65_536  # decompressed at a time
LINE_BYTES = 1_000_000
# Values in one JSON text: each becomes an object of some hundred bytes, however short its text.
MAX_VALUES = 3_000_000


def inflated(chunks: Iterable[bytes], encoding: str, cap_bytes: int) -> Iterator[bytes]:
    """The decoded body, in chunks; `SourceError` as soon as it exceeds the cap."""
    name = encoding.strip().lower()
    if name not in ("", "identity", "gzip", "x-gzip"):
        raise SourceError(f"The body is encoded as {shown(encoding)}; plain and gzip are read.")
    pieces = _gunzipped(chunks) if "gzip" in name else chunks
    size_bytes = 0
    for piece in pieces:
        size_bytes += len(piece)
        if size_bytes > cap_bytes:
            raise SourceError(f"The body is larger than {cap_bytes / 1e6:g} MB.")
        yield piece


def _gunzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Decompressed gzip, in bounded chunks, with all of its members."""
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
        raise SourceError(f"The gzip body is damaged ({e}).") from None
    if started and not stream.eof:
        raise SourceError("The gzip body ends too early.")


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
    if sum(map(body.count, ",[{")) > MAX_VALUES:
        raise SourceError(f"The JSON holds more than {MAX_VALUES} values.")
    try:
        return json.loads(body, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise SourceError("The JSON is nested too deeply.") from None
    except SourceError:
        raise
    except ValueError as e:
        raise SourceError(f"The body is not JSON: {str(e)[:120]}.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise SourceError(f"The JSON gives the key {shown(twice)} twice.")
    return found


def _no_constant(name: str) -> NoReturn:
    raise SourceError(f"The JSON holds {name}, which is not a number.")


def csv_rows(text_lines: Iterable[str], needed: Iterable[str]) -> Iterator[dict[str, str]]:
    """Rows of a CSV whose header has the needed columns, in any order and with others."""
    table = csv.reader(text_lines, strict=True)
    try:
        header = next(table, [])
        if missing := [c for c in needed if c not in header]:
            raise SourceError(
                f"The CSV has no column {missing[0]}: its header is {shown(','.join(header))}."
            )
        if len(set(header)) != len(header):
            raise SourceError("The CSV gives a column twice.")
        for cells in table:
            if not cells:
                continue
            if len(cells) != len(header):
                raise SourceError(f"Line {table.line_num} of the CSV has {len(cells)} cells.")
            yield dict(zip(header, cells, strict=True))
    except csv.Error as e:
        raise SourceError(f"Line {table.line_num} of the CSV: {e}.") from None


def zip_member(data: bytes, suffix: str, cap_bytes: int) -> bytes:
    """The single member of a zip with this suffix, decompressed at most to the cap."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = [i for i in archive.infolist() if i.filename.endswith(suffix)]
            if len(names) != 1:
                raise SourceError(f"The zip holds {len(names)} files named *{suffix}, not one.")
            with archive.open(names[0]) as member:
                found = member.read(cap_bytes + 1)
    except SourceError:
        raise
    except _DAMAGED as e:  # damaged bytes raise other errors than BadZipFile, too
        raise SourceError(f"The zip is damaged ({type(e).__name__}).") from None
    if len(found) > cap_bytes:
        raise SourceError(f"The file in the zip is larger than {cap_bytes / 1e6:g} MB.")
    return found
