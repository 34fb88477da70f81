"""A log line for each rerun of the page, with an id to report when something fails."""

from __future__ import annotations

import logging
import re
import time
from types import TracebackType
from typing import Self

import streamlit as st

from app.log import log

HEADER = "X-Request-ID"  # that a proxy may send with the websocket's handshake
_SESSION = "log_session"
_GIVEN_ID = re.compile(r"[A-Za-z0-9._+/=-]{1,64}")
_configured: list[bool] = []


class UnexpectedError(Exception):
    """What the page shows of an exception: only the id under which the log has it."""

    alternate_name = ""  # Streamlit writes a name before the sentence otherwise


def sentence(log_id: str) -> str:
    """The sentence with the id that a user can pass on to the operator of the server."""
    return (
        f"Something went wrong; the log has it under id {log_id}. Your scenario is in the address: "
        "reload the page, or change what you did last."
    )


class rerun:  # noqa: N801 - used as a context manager, like those of contextlib
    """Context manager around one rerun of the page; writes one line to the log at the end.

    An exception is logged and shown as a sentence with its id, and the run ends as with `st.stop`.
    If client.showErrorDetails is on (a developer's machine), Streamlit shows the exception instead.
    """

    def __enter__(self) -> Self:
        if not _configured:
            _configured.append(True)
            configure()
        log.adopt()
        self._request = log.Request(
            log.new_id(),
            session=st.session_state.setdefault(_SESSION, log.new_id()),
            connection=_connection(),
        )
        self._working = log.request(self._request)
        self._working.__enter__()
        self._began, self._cpu = time.perf_counter(), time.thread_time()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        places: TracebackType | None,
    ) -> None:
        outcome = "done" if error is None else "left"  # ended by a newer rerun or a login
        hides = isinstance(error, Exception) and st.get_option("client.showErrorDetails") == "none"
        try:
            if isinstance(error, Exception):
                outcome = "failed"
                log_id = log.failed("unexpected", error) if hides else log.id_of(error)
            log.event(
                "rerun",
                outcome=outcome,
                ms=round((time.perf_counter() - self._began) * 1000, 1),
                cpu_ms=round((time.thread_time() - self._cpu) * 1000, 1),
                **{"searches": 0} | self._request.figures(),
            )
        finally:
            self._working.__exit__(None, None, None)
        if hides:
            st.exception(UnexpectedError(sentence(log_id)))
            st.stop()


def configure() -> None:
    """Set up the log of a server."""
    # Otherwise Streamlit prints tracebacks, with the exception's message, past its own log.
    st.set_option("logger.enableRich", False)
    if warned := log.configure(more=_secrets()):
        log.event("setting", level=logging.WARNING, said=warned)


def on_page(url_path: str) -> None:
    """Record which page the rerun draws."""
    if one := log.current():
        one.page = url_path or "plan"


def _connection() -> str:
    """The id that a proxy gave the connection; empty if it is not a valid id."""
    given = st.context.headers.get_all(HEADER)
    return given[0] if len(given) == 1 and _GIVEN_ID.fullmatch(given[0]) else ""


def _secrets() -> dict[str, object]:
    return st.secrets.to_dict() if st.secrets.load_if_toml_exists() else {}
