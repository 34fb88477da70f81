"""The login page, where a login is set up, and the name of the user."""

from __future__ import annotations

import streamlit as st

from app.document.escape import as_text
from app.web import owner

_WRONG = "login_wrong"


def is_open() -> bool:
    """Whether the page may be drawn. If not, draw the login and leave the address unchanged."""
    if owner.is_admitted():
        return True
    st.title("Runcast", anchor=False)
    offered = owner.providers()
    if not offered:
        st.error("The login of this page is not set up: docs/teams.md says how.")
        return False
    st.markdown("Log in to see this page.")
    if st.query_params.to_dict():  # Streamlit drops the query on return from a login
        st.caption("The login leads to the first page: open your link again after it.")
    for provider in offered:
        label = f"Log in with {provider}" if provider else "Log in"
        key = f"login_{provider or 'default'}"
        st.button(as_text(label), key=key, type="primary", on_click=_log_in, args=(provider,))
    if wrong := st.session_state.pop(_WRONG, None):
        st.error(as_text(wrong))
    return False


def draw() -> None:
    """Draw the user's name and the log-out; nothing without a login."""
    try:
        who = owner.current()
    except owner.NoOwnerError:
        return  # the section on saved scenarios shows the reason
    if who.is_local:
        return
    st.caption(f"Logged in as {as_text(who.name)}")
    if owner.has_login():
        st.button("Log out", key="login_out", on_click=st.logout, width="stretch")
    elif address := owner.log_out_address():
        st.link_button("Log out", address, key="login_out", width="stretch")


def _log_in(provider: str | None) -> None:
    if wrong := owner.log_in(provider):
        st.session_state[_WRONG] = wrong
