"""The note of a first look, and the wait for the whole answer behind it."""

from __future__ import annotations

import streamlit as st

from app.web import answers, link
from app.web.first_look import NOTE

KEY = "first_look"  # of its container, so that others can tell that more is to come
WAITS = "first_look_waits"  # the question whose answer is still searched for


def begin() -> None:
    """A new run waits for nothing yet, whatever one that an edit ended waited for."""
    st.session_state.pop(WAITS, None)


def draw(key: answers.Key) -> None:
    """Say that more is to come: the answer to a question."""
    st.session_state[WAITS] = key
    with st.container(key=KEY):
        st.info(NOTE)


def is_awaited() -> bool:
    """Whether this run will wait for a search when everything is drawn."""
    return WAITS in st.session_state


def wait() -> None:
    """Draw the page again when the search has ended, where one is awaited. To be called when
    everything is drawn: every widget can be used meanwhile, and an edit ends this run, not the
    search.

    A fragment that asks again and again would do the same, but each time the browser also sends
    what its widgets held before an answer that is still on its way.
    """
    key: answers.Key | None = st.session_state.pop(WAITS, None)
    if key is None:
        return
    answers.wait(key)
    link.keep()  # the next run is nobody's step in the browser's history
    st.rerun(scope="app")
