"""What the Price data page shows, in the address: `show_cloud=aws,gcp`, beside the scenario.

The scenario is the link's (app/web/link.py), which leaves these alone. As there, the address wins
when it is not what the page last wrote; otherwise the widgets do, and the address is written.
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
    """Let the address set the widgets, before they are drawn, if it is not what was written.

    `choices` are the values of each filter, `single` the filters of one value with their default.
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
    """Callback of every filter: the browser may still show the address of the edit before."""
    st.session_state[_EDITED] = True
    st.session_state[_NOTES] = []


def notes() -> tuple[str, ...]:
    """What the address asked for and did not get."""
    return tuple(st.session_state.get(_NOTES, ()))


def write(names: Sequence[str], single: Mapping[str, str]) -> None:
    """Put the filters into the address; one that is at its default is left out."""
    shows = {}
    for name in names:
        value = st.session_state.get(key(name))
        text = str(value) if name in single else ",".join(value or ())
        if text and text != single.get(name):
            shows[name] = text
    view_query.write(shows)
    st.session_state[_WRITTEN] = shows
