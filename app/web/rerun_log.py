"""Each rerun of the page in the log, and its id for who sees something go wrong."""

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
    """What the page says of an exception: nothing of it but where to find it."""

    alternate_name = ""  # Streamlit writes a name before the sentence otherwise


def sentence(log_id: str) -> str:
    """What a person can tell whoever runs the server."""
    return (
        f"Something went wrong; the log has it under id {log_id}. Your scenario is in the address: "
        "reload the page, or change what you did last."
    )


class rerun:  # noqa: N801 - used as a context, like the functions of contextlib
    """One rerun, from its first line to its last: one line of the log at the end.

    An exception is logged and drawn as a sentence with its id; the run ends as `st.stop` ends it.
    Where client.showErrorDetails shows more (a developer's machine), Streamlit draws it instead.
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
        outcome = "done" if error is None else "left"  # for a newer rerun, or to log in
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
    """Set the log of a server up."""
    # Else Streamlit prints tracebacks past its own log, with what the exception says.
    st.set_option("logger.enableRich", False)
    if warned := log.configure(more=_secrets()):
        log.event("setting", level=logging.WARNING, said=warned)


def on_page(url_path: str) -> None:
    """Say which page the rerun draws."""
    if one := log.current():
        one.page = url_path or "plan"


def _connection() -> str:
    """The id that a proxy gave the connection; one that is no id is none."""
    given = st.context.headers.get_all(HEADER)
    return given[0] if len(given) == 1 and _GIVEN_ID.fullmatch(given[0]) else ""


def _secrets() -> dict[str, object]:
    return st.secrets.to_dict() if st.secrets.load_if_toml_exists() else {}
