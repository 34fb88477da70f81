"""A real HTTP server on the loopback interface whose answers a test writes."""

import gzip
import json
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


@dataclass
class Reply:
    """An answer: a body, or a function that writes to the socket what no server should."""

    body: bytes = b""
    kind: str = "application/json"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    write: Callable | None = None  # takes the handler, after the headers


def as_json(value, **more) -> Reply:
    return Reply(json.dumps(value).encode(), **more)


def as_text(text: str, kind: str = "text/plain; charset=utf-8", **more) -> Reply:
    return Reply(text.encode(), kind=kind, **more)


def gzipped(reply: Reply) -> Reply:
    headers = {**reply.headers, "Content-Encoding": "gzip"}
    return Reply(gzip.compress(reply.body), reply.kind, reply.status, headers)


class Feed:
    """Paths -> answers. An answer may be a `Reply`, a list to be used up, or a function."""

    def __init__(self, routes=None):
        self.routes = dict(routes or {})
        self.asked: list[Asked] = []
        self.lock = threading.Lock()

    def answer(self, asked: Asked) -> Reply:
        with self.lock:
            self.asked.append(asked)
            route = self.routes.get(asked.path, Reply(b"not here", "text/plain", 404))
            if isinstance(route, list):
                route = route.pop(0) if len(route) > 1 else route[0]
        return route(asked) if callable(route) else route

    def paths(self) -> list[str]:
        return [a.path for a in self.asked]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the client to acknowledge its head
    server: "_Server"

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        split = urlsplit(self.path)
        size = int(self.headers.get("content-length", 0))
        asked = Asked(
            method=self.command,
            path=unquote(split.path),
            query=parse_qs(split.query),
            headers={k.lower(): v for k, v in self.headers.items()},
            body=self.rfile.read(size),
        )
        reply = self.server.feed.answer(asked)
        etag = reply.headers.get("ETag")
        try:
            if reply.write is not None and not reply.status:  # of the protocol itself, too
                self.close_connection = True
                reply.write(self)
                return
            if etag and self.headers.get("if-none-match") == etag:
                self.send_response(304)
                self.end_headers()
                return
            self.send_response(reply.status)
            if reply.kind:
                self.send_header("Content-Type", reply.kind)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.write is None and "Transfer-Encoding" not in reply.headers:
                self.send_header("Content-Length", str(len(reply.body)))
            if reply.write is not None:
                self.send_header("Connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(reply.body)
            if reply.write is not None:
                reply.write(self)
        except OSError:  # the client has had enough
            self.close_connection = True

    do_POST = do_GET  # noqa: N815 - the name that http.server calls


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    feed: Feed

    def handle_error(self, request, client_address):
        pass


@contextmanager
def serving(feed: Feed):
    """The address of a server of this feed, for as long as the block lasts."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.feed = feed
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
