"""Parts of a page that rerun on their own when opened or edited."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from app.web import first_look

P = ParamSpec("P")


def alone(part: Callable[P, None]) -> Callable[P, None]:
    """Decorator: redraw this part alone when only it changes, a twentieth of the page's work.

    Nothing outside the part may depend on it. A fragment cannot start until the current run has
    ended, so a page that waits for a search draws its parts directly: an edit then ends the wait.
    """
    fragment = st.fragment(part)

    @wraps(part)
    def draw(*args: P.args, **kwargs: P.kwargs) -> None:
        if first_look.is_awaited():
            part(*args, **kwargs)
        else:
            fragment(*args, **kwargs)

    return draw
