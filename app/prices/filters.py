"""The filters of the Prices page in its address, such as `show_cloud=aws,gcp`.

The scenario is in the same address; app/web/link.py reads it and leaves the filters alone. If the
address differs from what the page last wrote, the address sets the widgets; otherwise the widgets
set the address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from app.scenario.link import VIEW
from app.web import view_query
from core.errors import nearest, shown

_WRITTEN = "prices_address_written"
_NOTES = "prices_address_notes"
_EDITED = "prices_address_edited"
MAX_CHARS = 2000


def key(name: str) -> str:
    """The key of a filter's widget in the session."""
    return f"prices_{name}"


def take_over(choices: Mapping[str, Sequence[str]], single: Mapping[str, str]) -> None:
    """Set the widgets from the address, before they are drawn, if the page did not write it.

    `choices` has the allowed values of each filter; `single` has the filters that take one value,
    with their defaults.
    """
    state = st.session_state
    asked, is_edited = view_query.asked(), state.pop(_EDITED, False)
    if (is_edited or asked == state.get(_WRITTEN)) and all(key(n) in state for n in choices):
        return
    notes = [
        f"Ignored from the link: {VIEW}{shown(name)[1:-1]} is no filter of this page."
        for name in asked
        if name not in choices
    ]
    for name, allowed in choices.items():
        good = []
        for value in asked.get(name, "")[:MAX_CHARS].split(","):
            if value in allowed:
                good.append(value)
            elif value:
                guess = nearest(value, list(allowed))
                hint = f" Did you mean {guess!r}?" if guess else ""
                notes.append(f"Ignored from the link: {VIEW}{name}={shown(value)} is no choice "
                             f"here.{hint}")  # fmt: skip
        if name in single:
            state[key(name)] = good[0] if good else single[name]
        else:
            state[key(name)] = list(dict.fromkeys(good))
    state[_NOTES] = notes
    state[_WRITTEN] = asked


def edited() -> None:
    """Callback of every filter: the browser may still have the address from before this edit."""
    st.session_state[_EDITED] = True
    st.session_state[_NOTES] = []


def notes() -> tuple[str, ...]:
    """Sentences about the parts of the address that were ignored."""
    return tuple(st.session_state.get(_NOTES, ()))


def write(names: Sequence[str], single: Mapping[str, str]) -> None:
    """Write the filters into the address, except those at their default."""
    shows = {}
    for name in names:
        value = st.session_state.get(key(name))
        text = str(value) if name in single else ",".join(value or ())
        if text and text != single.get(name):
            shows[name] = text
    view_query.write(shows)
    st.session_state[_WRITTEN] = shows
