"""The note on a first look, and the wait for the whole answer."""

from __future__ import annotations

import streamlit as st

from app.web import answers, link
from app.web.first_look import NOTE

KEY = "first_look"  # of its container, so that tests see that more is to come
WAITS = "first_look_waits"  # the question that is still being searched


def begin() -> None:
    """Forget what an earlier run, ended by an edit, was waiting for."""
    st.session_state.pop(WAITS, None)


def draw(key: answers.Key) -> None:
    """Draw the note that the whole answer to a question is still to come."""
    st.session_state[WAITS] = key
    with st.container(key=KEY):
        st.info(NOTE)


def is_awaited() -> bool:
    """Whether this run will wait for a search once everything is drawn."""
    return WAITS in st.session_state


def wait() -> None:
    """Rerun the page when the awaited search, if any, has ended. Call it once everything is drawn:
    every widget stays usable meanwhile, and an edit ends this run but not the search.

    A fragment that polls would also work, but with each poll the browser sends its widgets'
    values, which may be older than an answer that is still on its way.
    """
    key: answers.Key | None = st.session_state.pop(WAITS, None)
    if key is None:
        return
    answers.wait(key)
    link.keep()  # the next run adds no step to the browser's history
    st.rerun(scope="app")
