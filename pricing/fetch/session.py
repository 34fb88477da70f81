"""Session of a price source: bounded requests with retries, redirects and a cache.

A `Session` belongs to one source and one refresh. It has one deadline and one size cap for all its
requests, retries transient errors (429, 5xx, a broken connection) with jitter and the server's own
Retry-After, keeps bodies with an ETag or Last-Modified for the next refresh, follows at most three
redirects and none to a private address, and takes credentials from the environment only. Rows that
the source leaves out or refuses, and its warnings, are counted here.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from types import TracebackType
from typing import Any, Self

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    sleep_using_event,
    stop_after_attempt,
)

from core.errors import RuncastError, shown
from pricing.fetch import decoding
from pricing.fetch.addresses import bare, http_date, joined, own_place, parts_of
from pricing.fetch.body_cache import BodyCache
from pricing.fetch.network import Deadline, GuardedTransport, PassedDeadlineError, SourceError

ATTEMPTS = 4
REDIRECTS = 3
LONGEST_WAIT_S = 20.0  # of one connect or read; the deadline may be earlier
PAUSE_S = 0.5  # doubled with every attempt, times a random fraction
SKEW_S = 600.0
BODY_BYTES = 32_000_000  # of a body that is held in memory; the largest real one has about 10 MB
WRONG_ROWS = 10_000  # above which a source is not read on
REASONS = 500  # kept with their reasons; a feed must not fill the memory with them
OVERRIDE = "RUNCAST_PRICE_URL_"  # + the name of the source: a mirror instead of the official host

# S3 serves files uploaded without a type as binary/octet-stream, GitHub as text/plain.
_PLAIN = ("text/plain", "application/octet-stream", "binary/octet-stream")
JSON = ("application/json", "text/json", "application/javascript", "text/javascript",
        "application/x-javascript", *_PLAIN)  # fmt: skip
TEXT = ("text/csv", "text/yaml", "application/yaml", "application/x-yaml", "application/csv",
        "text/xml", "application/xml", *_PLAIN)  # fmt: skip
ZIP = ("application/zip", "application/x-zip-compressed", *_PLAIN[1:])
GZIP = ("application/gzip", "application/x-gzip", *_PLAIN[1:])  # a file, not an encoding


class NoCredentialError(RuncastError):
    """The source needs a key that is not in the environment, so it is not asked."""


class _AgainError(SourceError):
    """A transient error; the server may say when to retry."""

    def __init__(self, sentence: str, retry_after_s: float | None = None) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A row of a feed that was refused, with the reason."""

    row: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a source that could not be read, whose old rows stay. '' matches any."""

    provider: str
    region: str
    sentence: str


@dataclass(slots=True, kw_only=True)
class Session:
    """The session that `fetch(session)` of a source gets: requests, and records of its rows."""

    source: str
    deadline_s: float = 120.0
    began_s: float | None = None  # of the monotonic clock, from which the deadline counts
    cap_bytes: int = 256_000_000  # decompressed, all requests together
    cache: BodyCache | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    left_out: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    bytes_read: int = 0
    _deadline: Deadline = field(init=False)
    _client: httpx.Client = field(init=False)
    _base: str = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = Deadline(self.deadline_s, self.stop, self.began_s)
        self._base = self.environ.get(OVERRIDE + self.source.upper(), "").rstrip("/")
        self._client = httpx.Client(
            transport=GuardedTransport(self._deadline, own_place(self._base)),
            follow_redirects=False,
            trust_env=False,
            timeout=LONGEST_WAIT_S,
            headers={"accept-encoding": "gzip", "user-agent": "runcast-prices"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    # --- requests of a source ---

    @property
    def today(self) -> date:
        """The day of this refresh, UTC."""
        return self.now().astimezone(UTC).date()

    def credential(self, name: str) -> str:
        """A key from the environment; `NoCredentialError` without it. Never logged or shown."""
        value = self.environ.get(name, "").strip()
        if not value:
            raise NoCredentialError(f"It needs {name} in the environment.")
        if not value.isascii() or not value.isprintable():
            raise SourceError(f"{name} holds a character that no header may have.")
        return value

    def json(self, url: str, **request: Any) -> Any:
        """A JSON answer, without duplicate keys or NaN."""
        return decoding.strict_json(self.body(url, accept=JSON, **request)[0])

    def text(self, url: str, **request: Any) -> tuple[str, date]:
        """A text answer, and its date by the server (never after today)."""
        data, day = self.body(url, accept=TEXT, **request)
        return decoding.text(data), day

    def body(
        self,
        url: str,
        *,
        accept: tuple[str, ...],
        headers: Mapping[str, str] | None = None,
        post: Any = None,
    ) -> tuple[bytes, date]:
        """A whole answer of at most 32 MB, from the cache if the server says that it has not
        changed. An answer to a POST is never cached."""

        def once() -> tuple[bytes, date]:
            with self._answer(url, accept, headers or {}, post, cached=post is None) as answer:
                if answer.status_code == httpx.codes.NOT_MODIFIED:
                    return self._kept(url), self._day(answer)
                data = b"".join(self._pieces(answer, BODY_BYTES))
                if post is None and self.cache is not None:
                    self.cache.keep(url, answer.headers, data)
                return data, self._day(answer)

        return self._patiently(once)

    def lines(self, url: str, keep: Callable[[str], bool]) -> Iterator[str]:
        """The lines of a large text that `keep` accepts; only these are kept in memory and cached.
        A connection that breaks midway is an error without a retry."""
        stack = self._patiently(lambda: self._opened(url))
        with stack as answer:
            if answer.status_code == httpx.codes.NOT_MODIFIED:
                yield from self._kept(url).decode("utf-8").split("\n")
                return
            held: list[str] = []
            with _as_source_error():
                for line in decoding.lines(self._pieces(answer, self.cap_bytes)):
                    if keep(line):
                        held.append(line)
                        yield line
            if self.cache is not None:
                self.cache.keep(url, answer.headers, "\n".join(held).encode())

    def check(self) -> None:
        """`SourceError` once the deadline has passed."""
        self._deadline.left_s()

    def follow(self, link: str, *, of: str) -> str:
        """The address of a next page; SourceError if it is on another host."""
        if parts_of(link)[:2] != parts_of(self._address(of))[:2]:
            raise SourceError(f"The next page is on another host: {shown(bare(link))}.")
        return link

    # --- records of its rows ---

    def leave_out(self, reason: str) -> None:
        """Count a well-formed row that is not needed (a CPU machine, an unknown GPU)."""
        known = reason in self.left_out or len(self.left_out) < REASONS
        self.left_out[reason if known else "other reasons"] += 1

    def refuse(self, row: object, reason: str) -> None:
        """Record a wrong row; `SourceError` when there are too many."""
        if len(self.refused) >= WRONG_ROWS:
            raise SourceError(f"More than {WRONG_ROWS} of its rows are wrong.")
        self.refused.append(Refused(row=shown(row), reason=reason))

    def part_failed(self, sentence: str, *, provider: str = "", region: str = "") -> None:
        """Record a part that could not be read, so that its old rows are kept."""
        self.parts.append(Part(provider=provider, region=region, sentence=sentence))

    def warn(self, sentence: str) -> None:
        """Record a warning, each only once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    # --- the requests themselves ---

    def _patiently(self, once: Callable[[], Any]) -> Any:
        """One request, retried after each `_AgainError` while the deadline allows."""
        retrying = Retrying(
            retry=retry_if_exception_type(_AgainError),
            stop=stop_after_attempt(ATTEMPTS),
            wait=self._pause_s,
            sleep=sleep_using_event(self.stop),
            reraise=True,
        )
        with _as_source_error():
            return retrying(lambda: _again_if_broken(once))

    def _pause_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked_s = error.retry_after_s if isinstance(error, _AgainError) else None
        jitter_s = random.uniform(0.2, 1.0) * PAUSE_S * 2 ** (state.attempt_number - 1)
        pause_s = jitter_s if asked_s is None else asked_s
        if pause_s >= self._deadline.left_s():
            raise SourceError(f"{error} It asks to wait {pause_s:.0f} s, past the deadline.")
        return pause_s

    def _address(self, url: str) -> str:
        """The official address, or the same path at the mirror that the operator named."""
        if not self._base or url.startswith(self._base):
            return url
        parts = parts_of(url)
        return self._base + parts.path + (f"?{parts.query}" if parts.query else "")

    def _opened(self, url: str) -> _Open:
        return _Open(self._answer(url, TEXT, {}, None, cached=True))

    @contextmanager
    def _answer(
        self,
        url: str,
        accept: tuple[str, ...],
        headers: Mapping[str, str],
        post: Any,
        *,
        cached: bool,
    ) -> Iterator[httpx.Response]:
        """A successful answer after all redirects, with its body unread."""
        address = self._address(url)
        first = parts_of(address)[:2]
        send = dict(headers)
        if cached and self.cache is not None:
            send |= self.cache.validators(url)
        for _ in range(REDIRECTS + 1):
            self._check_scheme(address)
            self._deadline.left_s()
            request = self._client.build_request(
                "GET" if post is None else "POST", address, headers=send, json=post
            )
            answer = self._client.send(request, stream=True)
            try:
                if not answer.has_redirect_location:
                    self._check(answer, accept)
                    yield answer
                    return
            finally:
                answer.close()
            if post is not None:
                raise SourceError("It redirects a POST, which is not followed.")
            address = joined(address, answer.headers["location"])
            if parts_of(address)[:2] != first:
                send = {}  # a key is sent only to its own host
        raise SourceError(f"It redirects more than {REDIRECTS} times.")

    def _check_scheme(self, address: str) -> None:
        parts = parts_of(address)
        plain = self._base.startswith("http://")
        if parts.scheme != "https" and not (plain and parts.scheme == "http"):
            raise SourceError(f"The address {shown(bare(address))} is not https.")

    def _check(self, answer: httpx.Response, accept: tuple[str, ...]) -> None:
        """Check status and type of an answer, and warn of a skewed clock."""
        status = answer.status_code
        if status in (429, 500, 502, 503, 504):
            raise _AgainError(f"The server answers {status}.", self._retry_after_s(answer))
        if status != httpx.codes.NOT_MODIFIED and status != httpx.codes.OK:
            hint = ": is its key valid?" if status in (401, 403) else "."
            raise SourceError(f"The server answers {status}{hint}")
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if status == httpx.codes.OK and kind and kind not in accept:
            raise SourceError(f"The body is {shown(kind)}, not {accept[0]}.")
        if (sent := http_date(answer.headers.get("date"))) is not None:
            skew_s = (sent - self.now()).total_seconds()
            if abs(skew_s) > SKEW_S:
                side = "behind" if skew_s > 0 else "ahead of"
                self.warn(f"This clock is {abs(skew_s) / 60:.0f} min {side} the server's.")

    def _retry_after_s(self, answer: httpx.Response) -> float | None:
        """Seconds of Retry-After, from a number or a date."""
        text = answer.headers.get("retry-after", "").strip()
        if text.isascii() and text.isdecimal():
            return float(text[:9])
        at = http_date(text)
        return None if at is None else max(0.0, (at - self.now()).total_seconds())

    def _pieces(self, answer: httpx.Response, cap_bytes: int) -> Iterator[bytes]:
        left = self.cap_bytes - self.bytes_read
        encoding = answer.headers.get("content-encoding", "")
        for piece in decoding.inflated(answer.iter_raw(), encoding, min(cap_bytes, left)):
            self.bytes_read += len(piece)
            self._deadline.left_s()
            yield piece

    def _kept(self, url: str) -> bytes:
        body = None if self.cache is None else self.cache.body(url)
        if body is None:
            raise SourceError("The server says 'not modified' of a body that is not cached.")
        return body

    def _day(self, answer: httpx.Response) -> date:
        dated = http_date(answer.headers.get("last-modified"))
        return self.today if dated is None else min(dated.date(), self.today)


class _Open:
    """An answer that is opened inside the retries and read later."""

    def __init__(self, answer: Any) -> None:
        self._context = answer
        self._answer: httpx.Response = answer.__enter__()

    def __enter__(self) -> httpx.Response:
        return self._answer

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)


def _again_if_broken(once: Callable[[], Any]) -> Any:
    try:
        return once()
    except PassedDeadlineError:
        raise
    except httpx.TransportError as e:
        raise _AgainError(f"The connection failed: {str(e)[:120] or type(e).__name__}.") from e


@contextmanager
def _as_source_error() -> Iterator[None]:
    try:
        yield
    except httpx.HTTPError as e:
        raise SourceError(f"The connection failed: {str(e)[:120] or type(e).__name__}.") from e
    except httpx.InvalidURL:
        raise SourceError("It leads to an address that is none.") from None
