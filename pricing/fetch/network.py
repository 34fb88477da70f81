"""Connection to a price feed: one deadline for everything, and no private addresses.

httpx bounds each read, so a server that sends a byte a second is never too slow for it; here every
connect, handshake and read gets what is left of one deadline. A host is resolved once, refused if
any of its addresses is private, loopback or link-local, and connected to at exactly that address,
so that the name cannot point elsewhere a moment later.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import httpcore
import httpx

from core.errors import RuncastError, shown

Place = tuple[str, int]  # host and port
# Prefixes before an IPv4 address: IPv4-compatible, translated (RFC 2765), NAT64.
_ENDS_IN_IPV4 = [ipaddress.ip_network(n) for n in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")]
# What `is_global` of some versions of Python takes for public: protocol assignments, the host of
# an Azure machine, local NAT64, site-local addresses.
_NOT_PUBLIC = [
    ipaddress.ip_network(n)
    for n in ("192.0.0.0/24", "168.63.129.16/32", "64:ff9b:1::/48", "fec0::/10")
]


class SourceError(RuncastError):
    """A price source cannot be read; the sentence is the reason."""


class PassedDeadlineError(SourceError):
    """The source took longer than it was given."""


class Deadline:
    """Deadline of a source in seconds of the monotonic clock; all sources may be stopped
    earlier."""

    def __init__(self, limit_s: float, stop: threading.Event, began_s: float | None = None) -> None:
        self.limit_s = limit_s
        self._stop = stop
        self._end_s = (time.monotonic() if began_s is None else began_s) + limit_s

    def left_s(self) -> float:
        """Seconds that are left; `PassedDeadlineError` if there are none."""
        if self._stop.is_set():
            raise PassedDeadlineError("It was stopped.")
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise PassedDeadlineError(f"It took longer than its {self.limit_s:g} s.")
        return left_s


def is_public(address: str) -> bool:
    """Whether an IP address is on the public Internet, with every IPv4 address that it embeds.

    >>> is_public("169.254.169.254"), is_public("::ffff:10.0.0.1"), is_public("93.184.216.34")
    (False, False, True)
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip.is_multicast or any(ip in network for network in _NOT_PUBLIC):
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global
    inner = _embedded(ip)
    if any(not is_public(str(v4)) for v4 in inner):
        return False
    return bool(inner) or ip.is_global


def _embedded(ip: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that a gateway, a tunnel or the system itself would take out of it."""
    last = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    found = [v4 for v4 in (ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())) if v4 is not None]
    is_isatap = int(ip) >> 32 & 0xFDFFFFFF == 0x5EFE
    if is_isatap or any(ip in network for network in _ENDS_IN_IPV4):
        found.append(last)
    return found


def resolved(host: str, port: int, own: frozenset[Place]) -> list[str]:
    """The addresses of a host. Private ones only where the operator named that host and port."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as e:
        raise httpcore.ConnectError(f"the name {shown(host)} cannot be resolved") from e
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if (host, port) not in own:
        private = [a for a in addresses if not is_public(a)]
        if private:
            raise SourceError(f"{shown(host)} is the private address {private[0]}: refused.")
    return addresses


@cache
def _ssl_context() -> ssl.SSLContext:
    """The TLS context, made once: reading certificates takes a tenth of a second."""
    return httpx.create_ssl_context(trust_env=False)


class _Bounded(httpcore.NetworkStream):
    """A connection on which every wait ends at the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _least(timeout, self._deadline))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _least(timeout, self._deadline))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        timeout = _least(timeout, self._deadline)
        return _Bounded(
            self._stream.start_tls(ssl_context, server_hostname, timeout), self._deadline
        )

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _least(timeout: float | None, deadline: Deadline) -> float:
    left_s = deadline.left_s()
    return left_s if timeout is None else min(timeout, left_s)


class _Guard(httpcore.NetworkBackend):
    """Connects to checked addresses only, and bounds each connection by the deadline."""

    def __init__(self, deadline: Deadline, own: frozenset[Place]) -> None:
        self._plain = httpcore.SyncBackend()
        self._deadline = deadline
        self._own = own

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        failed: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for address in resolved(host, port, self._own):
            try:
                stream = self._plain.connect_tcp(
                    address, port, _least(timeout, self._deadline), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as e:
                failed = e
            else:
                return _Bounded(stream, self._deadline)
        raise failed or httpcore.ConnectError(f"{shown(host)} has no address")

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.NetworkStream:
        raise SourceError("A price feed is never a local socket.")

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, self._deadline.left_s()))


class GuardedTransport(httpx.BaseTransport):
    """Transport for the `httpx.Client` of a price source."""

    def __init__(self, deadline: Deadline, own: frozenset[Place] = frozenset()) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=_ssl_context(),
            max_connections=4,
            http2=True,  # if the server supports it, by ALPN
            network_backend=_Guard(deadline, own),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the caller reads the body."""
        if not isinstance(request.stream, httpx.SyncByteStream):
            raise TypeError("a request of a price source has a plain body")
        url = request.url
        with _as_httpx():
            answer = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(
            answer.status,
            headers=answer.headers,
            stream=_Body(answer),
            request=request,
            extensions={"http_version": answer.extensions["http_version"]},
        )

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        with _as_httpx():
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


@contextlib.contextmanager
def _as_httpx() -> Iterator[None]:
    """Translate the errors of httpcore into those of httpx."""
    try:
        yield
    except httpcore.TimeoutException as e:
        raise httpx.ReadTimeout(str(e) or "it timed out") from e
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as e:
        raise httpx.TransportError(str(e) or type(e).__name__) from e
