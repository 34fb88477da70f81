"""Parts of a page that are drawn alone when somebody opens them or chooses something in them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from app.web import first_look_note

P = ParamSpec("P")


def alone(part: Callable[P, None]) -> Callable[P, None]:
    """Draws a part by itself when only it has changed: a twentieth of the work of the page.

    What it shows must not be shown elsewhere. A fragment waits until the run in progress has ended,
    so a page that waits for a search draws its parts as its own: each of their edits ends the wait.
    """
    fragment = st.fragment(part)

    @wraps(part)
    def draw(*args: P.args, **kwargs: P.kwargs) -> None:
        if first_look_note.is_awaited():
            part(*args, **kwargs)
        else:
            fragment(*args, **kwargs)

    return draw
