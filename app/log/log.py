"""The log: one line per event on standard error, JSON if RUNCAST_LOG=json.

An event has a name and numbers. It never holds what a user typed, saved or negotiated: no query, no
scenario, no price. Of an exception it holds the type and the places in the code; the message may
repeat a value and is written at level debug only. What other libraries log (Streamlit, uvicorn)
goes through the same formatter, which removes secrets. docs/operations.md lists the events and
their keys.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import orjson

from app.log.redaction import redacted, secrets_of
from hardware.outside.text import escaped_json, plain

LOG, LEVEL = "RUNCAST_LOG", "RUNCAST_LOG_LEVEL"
LEVELS = ("debug", "info", "warning", "error")
FRAMES = 12  # of a traceback, innermost frames only
SAID_MAX = 2_000  # characters of a library's message
_FOREIGN = ("streamlit", "uvicorn", "websockets", "py.warnings")
_ROOT = Path(__file__).parents[2]
_ID = "_runcast_log_id"  # attribute on an exception: its id in the log
_LOGGER = logging.getLogger("runcast")

T = TypeVar("T")


@dataclass(slots=True)
class Request:
    """One page rerun or one command. Its id is in every line about it."""

    id: str
    session: str = ""
    connection: str = ""
    page: str = ""
    counts: dict[str, float] = field(default_factory=dict)

    def add(self, **counts: float) -> None:
        """Add figures to the last line of the request."""
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + value

    def figures(self) -> dict[str, Any]:
        """The figures added so far, as the last line will show them."""
        return {name: round(value, 1) for name, value in self.counts.items()}


FAILURES = ("unexpected", "thread_failed")  # events of a bug
heard_by: list[Callable[[str, Mapping[str, Any]], None]] = []  # of every event, at any level

_CURRENT: ContextVar[Request | None] = ContextVar("runcast_request", default=None)


def new_id() -> str:
    """Eight hex digits: short enough to read out over the phone."""
    return secrets.token_hex(4)


def current() -> Request | None:
    """The request that this thread is working for."""
    return _CURRENT.get()


@contextmanager
def request(one: Request) -> Iterator[Request]:
    """Make this the current request of this thread inside the block."""
    before = _CURRENT.set(one)
    try:
        yield one
    finally:
        _CURRENT.reset(before)


def carried(call: Callable[[], T]) -> Callable[[], T]:
    """Wrap a call so that it runs in any thread as part of the current request."""
    one = _CURRENT.get()
    if one is None:
        return call

    def called() -> T:
        with request(one):
            return call()

    return called


def stopwatch(cpu: Callable[[], float]) -> Callable[[], dict[str, Any]]:
    """Milliseconds from now on, by the clock and of the processor; `cpu` is its clock in s."""
    began, cpu_began = time.perf_counter(), cpu()
    return lambda: {
        "ms": round((time.perf_counter() - began) * 1000, 1),
        "cpu_ms": round((cpu() - cpu_began) * 1000, 1),
    }


def event(name: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its numbers; `fields` are keys listed in docs/operations.md."""
    for hear in heard_by:
        hear(name, fields)
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, name, extra={"runcast": fields})


def failed(name: str, error: BaseException, **fields: Any) -> str:
    """Log an unexpected error and return its id in the log."""
    for hear in heard_by:
        hear(name, fields)
    _LOGGER.error(name, exc_info=error, extra={"runcast": fields})
    return id_of(error)


def id_of(error: BaseException) -> str:
    """The id of an exception in the log: that of the request in which it first appeared."""
    known = getattr(error, _ID, None)
    if isinstance(known, str):
        return known
    one = _CURRENT.get()
    made = one.id if one else new_id()
    try:
        setattr(error, _ID, made)
    except AttributeError:  # a type with slots: the next line gets another id
        return made
    return made


class Lines(logging.Formatter):
    """Formats one record as one line."""

    def __init__(self, *, as_json: bool, hidden: tuple[str, ...]) -> None:
        super().__init__()
        self.as_json, self.hidden = as_json, hidden

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; a value that cannot be written does not lose the line."""
        said = self._fields(record)
        if not self.as_json:
            return plain(self._text(said))
        line = orjson.dumps(said, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        return escaped_json(line)

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        at = datetime.fromtimestamp(record.created, UTC)
        said: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
        }
        ours: Mapping[str, Any] | None = getattr(record, "runcast", None)
        if ours is not None:
            said["event"] = record.getMessage()
        else:
            text = redacted(" ".join(record.getMessage().split())[:SAID_MAX], self.hidden)
            said |= {"event": "library", "logger": record.name, "said": text}
        error = record.exc_info[1] if record.exc_info else None
        if ours is None and error is not None and record.levelno >= logging.ERROR:
            said["event"] = "unexpected"  # raised in a callback or fragment, caught by Streamlit
        if error is not None:
            said["request_id"] = id_of(error)
        if one := _CURRENT.get():
            said |= {"request_id": one.id} if error is None else {}
            said |= {k: v for k in ("session", "connection", "page") if (v := getattr(one, k))}
        said |= ours or {}
        if error is not None:
            said |= self._error(error)
        return said

    def _error(self, error: BaseException) -> dict[str, Any]:
        said: dict[str, Any] = {"error": type(error).__name__, "where": places_of(error)}
        if cause := error.__cause__ or (None if error.__suppress_context__ else error.__context__):
            said["because_of"] = type(cause).__name__
        if _LOGGER.isEnabledFor(logging.DEBUG):
            said["error_said"] = redacted(str(error)[:SAID_MAX], self.hidden)
        return said

    def _text(self, said: dict[str, Any]) -> str:
        head = " ".join(str(said.pop(key)) for key in ("time", "level", "event"))
        where = said.pop("where", None)
        line = " ".join([head, *(f"{k}={' '.join(str(v).split())}" for k, v in said.items())])
        if where is None:
            return line
        return "\n".join([line, "Traceback, the innermost call last:", *(f"  {w}" for w in where)])


def places_of(error: BaseException) -> list[str]:
    """Where an error was raised: file, line and function, innermost last, without machine paths."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return [f"{_short(f.filename)}:{f.lineno} {f.name}" for f in frames]


def _short(filename: str) -> str:
    path = Path(filename)
    if path.is_relative_to(_ROOT) and "site-packages" not in path.parts:
        return path.relative_to(_ROOT).as_posix()
    return "/".join(path.parts[-2:])


class _ToStderr(logging.Handler):
    """Writes to the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            self.handleError(record)


_HANDLER = _ToStderr()
_seen_loggers = -1


def configure(
    environ: Mapping[str, str] | None = None, *, more: Mapping[str, object] | None = None
) -> str:
    """Set up the log; may be called again. Returns a sentence if a setting is invalid.

    The texts of the table `more` are treated as secrets too, such as secrets.toml.
    """
    global _seen_loggers
    environ = os.environ if environ is None else environ
    kind, level = environ.get(LOG, "").strip().lower(), environ.get(LEVEL, "").strip().lower()
    as_json = kind == "json"
    level = level or ("info" if as_json else "warning")
    known = level if level in LEVELS else "info"
    hidden = secrets_of(environ, more)
    _HANDLER.setFormatter(Lines(as_json=as_json, hidden=hidden))
    _take(_LOGGER)
    _LOGGER.setLevel(known.upper())
    if as_json:
        logging.captureWarnings(capture=True)
        threading.excepthook = _thread_failed
    _seen_loggers = -1
    adopt()
    if kind not in ("", "json", "text"):
        return f"{LOG} is neither json nor text: the log is text."
    return "" if known == level else f"{LEVEL} is none of {', '.join(LEVELS)}: it is {known}."


def adopt() -> None:
    """Make the loggers of the server's libraries use our format; does almost nothing if none is
    new."""
    global _seen_loggers
    every = logging.root.manager.loggerDict
    if len(every) == _seen_loggers or _HANDLER.formatter is None:
        return
    for name, logger in list(every.items()):
        if name.partition(".")[0] in _FOREIGN or name in _FOREIGN:
            for handler in getattr(logger, "handlers", ()):
                if type(handler) is logging.StreamHandler:  # leaves other handlers alone
                    handler.setFormatter(_HANDLER.formatter)
    if getattr(_HANDLER.formatter, "as_json", False):
        _take(logging.getLogger("py.warnings"))
    _seen_loggers = len(every)


def _take(logger: logging.Logger) -> None:
    logger.addHandler(_HANDLER)  # adds none twice
    logger.propagate = False


def _thread_failed(gone: threading.ExceptHookArgs) -> None:
    if gone.exc_value is not None:
        failed("thread_failed", gone.exc_value)
