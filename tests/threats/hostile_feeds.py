"""Price feeds of servers that mean harm, each asked as a source of its own, a few at once.

Run as a program it asks them, beside a source that answers at once, and prints how many held:

    python -m tests.threats.hostile_feeds
"""

from __future__ import annotations

import gzip
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from pricing.asking import ask
from pricing.fetched import Fetched
from pricing.providers import verda
from pricing.sources import Source
from tests.feeds.server import Asked, Feed, Reply, serving
from tests.threats import evil_sources
from tests.threats.hostile_files import TWICE

DEADLINE_S = 4.0
LATE_S = 1.0  # that a source may end after its deadline, or another one may be delayed
AT_ONCE = 4


def row(**more: Any) -> dict[str, Any]:
    return {
        "instance_type": "8H200.141S.88V", "price_per_hour": "27.92", "currency": "usd",
        "gpu": {"description": "8x H200 SXM5 141GB", "number_of_gpus": 8},
        "gpu_memory": {"size_in_gigabytes": 1128}, "model": "H200", **more,
    }  # fmt: skip


GOOD = json.dumps([row()]).encode()
BOMB = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMB_BYTES = b"".join(BOMB.compress(b" " * 10**7) for _ in range(200)) + BOMB.flush()


def _poured(piece: bytes, pause_s: float = 0.0) -> Callable[[Any], None]:
    """A body without end."""

    def write(handler: Any) -> None:
        while True:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(pause_s)

    return write


def _raw(first: bytes, piece: bytes, pause_s: float = 0.0) -> Callable[[Any], None]:
    """Bytes of the protocol itself, without end, in place of an answer."""

    def write(handler: Any) -> None:
        handler.connection.sendall(first)
        while True:
            handler.connection.sendall(piece)
            time.sleep(pause_s)

    return write


def _listed(*rows: dict[str, Any]) -> Reply:
    return Reply(json.dumps(rows).encode())


def _packed(body: bytes, encoding: str = "gzip") -> Reply:
    return Reply(body, headers={"Content-Encoding": encoding})


MARKUP = ("<script>alert(1)</script>", "=cmd|'/c calc'!A1", "-oProxyCommand=x", "a\u202eb",
          "../../../etc", "x\x1b[31m", "1 `id` $(id)")  # fmt: skip
# What a server answers; a function takes the handler of the request and writes what it likes.
FEEDS: dict[str, Reply | Callable[[Any], None]] = {
    "a byte a second": Reply(write=_poured(b" ", 1.0)),
    "a body without end": Reply(write=_poured(b"[" * 65_536)),
    "a header a second": _raw(b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n", 1.0),
    "a header without end": _raw(b"HTTP/1.1 200 OK\r\nx-a: ", b"a" * 65_536),
    "headers without end": _raw(b"HTTP/1.1 200 OK\r\n", b"x-a: " + b"a" * 60_000 + b"\r\n"),
    "small headers without end": _raw(b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n" * 8_000),
    "interim answers without end": _raw(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000),
    "a status line without end": _raw(b"HTTP/1.1 200 ", b"O" * 65_536),
    "chunks without end": _raw(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        b"1\r\n \r\n" * 8_000,
    ),
    "a chunk of a lying size": _raw(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        b"ffffffffffffffff\r\n", b" " * 65_536,
    ),
    "a gzip bomb of 2 GB": _packed(BOMB_BYTES),
    "gzip in gzip": _packed(gzip.compress(gzip.compress(GOOD)), "gzip, gzip"),
    "an encoding that was not asked for": _packed(b"abc", "br"),
    "a redirect to the cloud's metadata": Reply(
        status=302, headers={"Location": "http://169.254.169.254/latest/meta-data/"}
    ),
    "a redirect to a file": Reply(status=302, headers={"Location": "file:///etc/passwd"}),
    "a redirect to itself": Reply(status=302, headers={"Location": "again"}),
    "come back in 30 years": Reply(status=503, headers={"Retry-After": "999999999"}),
    "not modified, of nothing": Reply(status=304),
    "a web page": Reply(b"<html>", kind="text/html"),
    "200,000 brackets": Reply(b"[" * 200_000),
    "100,000 objects in each other": Reply(b'{"a":' * 100_000),
    "a number of 5 MB": Reply(b'[{"price_per_hour":' + b"9" * 5_000_000 + b"}]"),
    "a text of a number of 5 MB": _listed(row(price_per_hour="9" * 5_000_000)),
    "100,000 keys, the last one twice": Reply(TWICE),
    "900,000 keys": Reply(
        ("[{" + ",".join(f'"k{i}":1' for i in range(900_000)) + "}]").encode()
    ),
    "3,000,000 empty lists": Reply(b"[" + b"[]," * 2_999_000 + b"[]]"),
    "30 MB of short texts": Reply(b"[" + b'"abcdefg",' * 2_900_000 + b'""]'),
    "119,000 wrong rows": Reply(b"[" + b'{"currency":"usd"},' * 119_000 + b"{}]"),
    "119,000 rows of EUR": Reply(b"[" + (json.dumps(row(currency="EUR")).encode() + b",") * 119_000
                                 + GOOD[1:]),
    "not UTF-8": Reply('[{"instance_type":"é"}]'.encode("latin-1")),
    "UTF-16": Reply(GOOD.decode().encode("utf-16")),
    "NaN": Reply(b'[{"price_per_hour": NaN}]'),
    "1e400": _listed(row(price_per_hour="1e400")),
    "another currency": _listed(row(currency="u\u017fd")),
    "names that are markup, formulas and commands": _listed(
        *(row(instance_type=n) for n in MARKUP)
    ),
}  # fmt: skip
# What reading does in its process; no server is asked.
DECODERS = {
    "a decoder that never returns": evil_sources.endless,
    "a decoder that takes all memory": evil_sources.hungry,
    "a decoder that crashes": evil_sources.crashing,
    "a decoder with a fault of ours": evil_sources.faulty,
}


def _answer(asked: Asked) -> Reply:
    reply = FEEDS[list(FEEDS)[int(asked.path.split("/")[1])]]
    return reply if isinstance(reply, Reply) else Reply(write=reply, status=0)


class _Everywhere(dict[str, Any]):
    """Whatever is asked for, the feed that the first folder names by its number."""

    def get(self, path: str, default: Any = None) -> Any:
        return _answer


def asked() -> Iterator[tuple[str, Fetched, float]]:
    """Every hostile source, what it came to, and how much longer an honest one took beside it than
    alone; a few are asked at once."""
    feed = Feed()
    feed.routes = _Everywhere()
    alone_s = max(_together({}, {})["honest"].seconds for _ in range(3))
    every = [*enumerate(FEEDS), *((None, name) for name in DECODERS)]
    with serving(feed) as base:
        for start in range(0, len(every), AT_ONCE):
            part, environ = {}, {}
            for n, name in every[start : start + AT_ONCE]:
                fetch = DECODERS[name] if n is None else verda.fetch
                part[name] = Source(
                    name=f"evil_{len(part)}", says="", fetch=fetch, deadline_s=DEADLINE_S
                )
                environ[f"RUNCAST_PRICE_URL_EVIL_{len(part) - 1}"] = f"{base}/{n}"
            found = _together(part, environ)
            delay_s = found.pop("honest").seconds - alone_s
            yield from ((name, one, delay_s) for name, one in found.items())


def _together(sources: dict[str, Source], environ: dict[str, str]) -> dict[str, Fetched]:
    every = {**sources, "honest": Source(name="honest", says="", fetch=evil_sources.honest)}
    last: dict[str, tuple[()]] = {s.name: () for s in every.values()}
    found = ask(list(every.values()), environ, None, last, None, lambda: datetime.now(UTC))
    return dict(zip(every, found, strict=True))


def faults(one: Fetched, delay_s: float) -> list[str]:
    """What is wrong with how a source was taken; empty where it held."""
    found = []
    if one.status != "failed" or one.offers:
        found.append(f"{one.status}, {len(one.offers)} prices")
    if not one.sentence.endswith((".", "?")) or not one.sentence.isprintable():
        found.append(f"no sentence: {one.sentence!r}")
    if one.seconds > DEADLINE_S + LATE_S:
        found.append(f"ended after {one.seconds:.1f} s")
    if delay_s > LATE_S:
        found.append(f"an honest source was delayed by {delay_s:.1f} s")
    return found


def main() -> int:
    tried, held, most_s = 0, 0, 0.0
    for name, one, delay_s in asked():
        wrong = faults(one, delay_s)
        tried, held, most_s = tried + 1, held + (not wrong), max(most_s, delay_s)
        sys.stdout.write(f"{name}: {one.sentence} {one.seconds:.1f} s\n")
        sys.stdout.writelines(f"BROKEN {name}: {fault}\n" for fault in wrong)
    sys.stdout.write(
        f"{tried} hostile feeds tried, {held} held; an honest one beside them took at most "
        f"{max(0.0, most_s):.2f} s longer\n"
    )
    return held < tried


if __name__ == "__main__":
    sys.exit(main())
