"""A log line for each rerun of the page, with an id to report when something fails."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def rerun() -> Iterator[None]:
    """One rerun of the page; writes one line to the log at the end.

    An exception is logged and shown as a sentence with its id, and the run ends as with `st.stop`.
    If client.showErrorDetails is on (a developer's machine), Streamlit shows the exception instead.
    """
    if not _configured:
        _configured.append(True)
        configure()
    log.adopt()
    session = st.session_state.setdefault(_SESSION, log.new_id())
    one = log.Request(log.new_id(), session=session, connection=_connection())
    outcome, log_id = "left", ""  # ended by a newer rerun or a login
    with log.request(one):
        took = log.stopwatch(time.thread_time)
        try:
            yield
            outcome = "done"
        except Exception as error:
            outcome = "failed"
            if st.get_option("client.showErrorDetails") != "none":
                log.id_of(error)
                raise
            log_id = log.failed("unexpected", error)
        finally:
            log.event("rerun", outcome=outcome, **took(), **{"searches": 0} | one.figures())
    if log_id:
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
