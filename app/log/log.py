"""The log: one line an event on standard error, JSON where RUNCAST_LOG=json.

An event has a name and numbers of its own. It never holds what somebody typed, saved or
negotiated: no query, no scenario, no price. Of an exception it says the kind and the places in the
code; what the exception says may repeat a value and is written at level debug only. What other
libraries log (Streamlit, uvicorn) goes through the same formatter, which takes secrets out.
docs/operations.md lists the events and their keys.
"""

from __future__ import annotations

import logging
import os
import secrets
import sys
import threading
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

LOG, LEVEL = "RUNCAST_LOG", "RUNCAST_LOG_LEVEL"
LEVELS = ("debug", "info", "warning", "error")
FRAMES = 12  # of a traceback, the innermost ones
SAID_MAX = 2_000  # characters of what a library says
_FOREIGN = ("streamlit", "uvicorn", "websockets", "py.warnings")
_ROOT = Path(__file__).parents[2]
_ID = "_runcast_log_id"  # on an exception: the id that the log has it under
_LOGGER = logging.getLogger("runcast")

T = TypeVar("T")


@dataclass(slots=True)
class Request:
    """What one rerun of the page or one command does: its id stands in every line about it."""

    id: str
    session: str = ""
    connection: str = ""
    page: str = ""
    counts: dict[str, float] = field(default_factory=dict)

    def add(self, **counts: float) -> None:
        """Add to what the last line of the request will say."""
        for name, value in counts.items():
            self.counts[name] = self.counts.get(name, 0) + value

    def figures(self) -> dict[str, Any]:
        """What was added, as its last line says it."""
        return {name: round(value, 1) for name, value in self.counts.items()}


_CURRENT: ContextVar[Request | None] = ContextVar("runcast_request", default=None)


def new_id() -> str:
    """Eight hex digits: short enough to be read out over the phone."""
    return secrets.token_hex(4)


def current() -> Request | None:
    """The request that this thread works for."""
    return _CURRENT.get()


@contextmanager
def request(one: Request) -> Iterator[Request]:
    """For as long as the block lasts, this thread works for that request."""
    before = _CURRENT.set(one)
    try:
        yield one
    finally:
        _CURRENT.reset(before)


def carried(call: Callable[[], T]) -> Callable[[], T]:
    """The call, in whatever thread, as work of the request that is current now."""
    one = _CURRENT.get()
    if one is None:
        return call

    def called() -> T:
        with request(one):
            return call()

    return called


def event(name: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event with its numbers; `fields` are keys of docs/operations.md."""
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, name, extra={"runcast": fields})


def failed(name: str, error: BaseException, **fields: Any) -> str:
    """Log what should not have happened; the id under which the log has it."""
    _LOGGER.error(name, exc_info=error, extra={"runcast": fields})
    return id_of(error)


def id_of(error: BaseException) -> str:
    """The id of an exception in the log: that of the request in which it was seen first."""
    known = getattr(error, _ID, None)
    if isinstance(known, str):
        return known
    one = _CURRENT.get()
    made = one.id if one else new_id()
    try:
        setattr(error, _ID, made)
    except AttributeError:  # a kind with slots: the next line has another id
        return made
    return made


class Lines(logging.Formatter):
    """One record as one line."""

    def __init__(self, *, as_json: bool, hidden: tuple[str, ...]) -> None:
        super().__init__()
        self.as_json, self.hidden = as_json, hidden

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; nothing of it is lost where a value cannot be written."""
        said = self._fields(record)
        if not self.as_json:
            return self._text(said)
        return orjson.dumps(said, default=str, option=orjson.OPT_NON_STR_KEYS).decode()

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
            said["event"] = "unexpected"  # a callback's or a fragment's, which Streamlit caught
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
    """Where it was raised: file, line and function, the innermost last, no path of the machine."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    return [f"{_short(f.filename)}:{f.lineno} {f.name}" for f in frames]


def _short(filename: str) -> str:
    path = Path(filename)
    if path.is_relative_to(_ROOT) and "site-packages" not in path.parts:
        return path.relative_to(_ROOT).as_posix()
    return "/".join(path.parts[-2:])


class _ToStderr(logging.Handler):
    """Whatever is standard error at the time."""

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
    """Set the log up, once a process or again; a sentence where a setting cannot be meant.

    `more` is a table whose texts are secrets too, as of secrets.toml.
    """
    global _seen_loggers
    environ = os.environ if environ is None else environ
    kind, level = environ.get(LOG, "").strip().lower(), environ.get(LEVEL, "").strip().lower()
    as_json = kind == "json"
    level = level or ("info" if as_json else "warning")
    known = level if level in LEVELS else "info"
    hidden = secrets_of(environ, more)
    _HANDLER.setFormatter(Lines(as_json=as_json, hidden=hidden))
    if _HANDLER not in _LOGGER.handlers:
        _LOGGER.addHandler(_HANDLER)
    _LOGGER.propagate = False
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
    """Let the loggers of the server's libraries write as ours do; costs nothing if none is new."""
    global _seen_loggers
    every = logging.root.manager.loggerDict
    if len(every) == _seen_loggers or _HANDLER.formatter is None:
        return
    for name, logger in list(every.items()):
        if name.partition(".")[0] in _FOREIGN or name in _FOREIGN:
            for handler in getattr(logger, "handlers", ()):
                if type(handler) is logging.StreamHandler:  # not a test's, nor somebody's own
                    handler.setFormatter(_HANDLER.formatter)
    if getattr(_HANDLER.formatter, "as_json", False):
        _take_warnings()
    _seen_loggers = len(every)


def _take_warnings() -> None:
    warned = logging.getLogger("py.warnings")
    if _HANDLER not in warned.handlers:
        warned.addHandler(_HANDLER)
    warned.propagate = False


def _thread_failed(gone: threading.ExceptHookArgs) -> None:
    if gone.exc_value is not None:
        failed("thread_failed", gone.exc_value)
