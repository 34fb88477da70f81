"""The note of a first look, and the wait for the whole answer behind it."""

from __future__ import annotations

import streamlit as st

from app import answers, link
from app.first_look import NOTE

KEY = "first_look"  # of its container, so that others can tell that more is to come


def draw() -> None:
    """Say that more is to come."""
    with st.container(key=KEY):
        st.info(NOTE)


def wait(key: answers.Key) -> None:
    """Draw the page again when the search has ended. To be called when everything is drawn: every
    widget can be used meanwhile, and an edit ends this run, not the search.

    A fragment that asks again and again would do the same, but each time the browser also sends
    what its widgets held before an answer that is still on its way.
    """
    answers.wait(key)
    link.keep()  # the next run is nobody's step in the browser's history
    st.rerun(scope="app")
