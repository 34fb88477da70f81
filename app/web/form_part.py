"""A collapsible part of the form: its fields are drawn only while it is open.

Nine of ten fields are in such parts. Drawing them on every rerun would cost more than the rest of
the form, and half of what goes to the browser. A field that is not drawn loses nothing: its value
is in the scenario.
"""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

OPEN = "form_open"  # in the session: the parts that are open
MORE = "more"  # all parts, among those that are open


def more(changed: int, errors: dict[str, str], fields: Collection[str]) -> bool:
    """Draw the button that shows and hides all parts; return whether they are shown. They are if
    one of them is open or one of their fields is wrong."""
    if any(field in errors for field in fields):
        st.session_state[OPEN] = sorted(_opened() | {MORE})
    is_open = bool(_opened())
    counted = f" ({changed} changed)" if changed else ""
    st.button(
        "Fewer settings" if is_open else f"More settings{counted}",
        key="form_more",
        icon=":material/expand_less:" if is_open else ":material/expand_more:",
        on_click=_more_toggled,
        args=(errors, fields),
        width="stretch",
    )
    return is_open


def _more_toggled(errors: dict[str, str], fields: Collection[str]) -> None:
    """Show all parts, or hide them, which drops the invalid values typed in them."""
    if not _opened():
        st.session_state[OPEN] = [MORE]
        return
    st.session_state[OPEN] = []
    for field in fields:
        errors.pop(field, None)


def _opened() -> set[str]:
    return set(st.session_state.get(OPEN, ()))


def _toggled(name: str, errors: dict[str, str], fields: Collection[str]) -> None:
    """Record that a part was opened or closed. Closing it drops the invalid values typed in it."""
    if st.session_state[_key(name)]:
        st.session_state[OPEN] = sorted(_opened() | {MORE, name})
        return
    st.session_state[OPEN] = sorted((_opened() | {MORE}) - {name})
    for field in fields:
        errors.pop(field, None)


def _key(name: str) -> str:
    return f"form_section_{name}"


def part(
    name: str, title: str, errors: dict[str, str], fields: Collection[str]
) -> ExpanderContainer:
    """A part of the form, to be filled if its `open` is true: the reader opened it, or one of its
    fields is wrong. Its title may change while it is open."""
    if any(field in errors for field in fields):
        st.session_state[OPEN] = sorted(_opened() | {name})
    st.session_state[_key(name)] = name in _opened()
    return st.expander(title, key=_key(name), on_change=_toggled, args=(name, errors, fields))
