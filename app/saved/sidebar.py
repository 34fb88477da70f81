"""Saved scenarios in the sidebar: save, find, open, share, rename, delete, undo.

The result of a button is shown at the next rerun. If the store cannot be used, a sentence appears
here and the page still works.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from app.document.escape import as_text
from app.saved import saved, words
from app.web import form as web_form
from app.web import link, owner
from core.errors import RuncastError
from pricing.store.saved import NAME_MAX, SavedScenario

_NAME, _SEARCH, _WHICH, _NEW_NAME = "saved_name", "saved_search", "saved_which", "saved_new_name"
_DONE, _WRONG, _UNDO = "saved_done", "saved_wrong", "saved_undo"


def draw() -> None:
    """Draw the section, closed at first; the store is not read until it is opened."""
    section = st.expander("Saved scenarios", key="saved_section", on_change="rerun")
    if section.open:
        with section:
            _draw()


def _draw() -> None:
    try:
        every = saved.listed(owner=owner.current().id)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    _draw_save({s.name for s in every})
    _draw_result()
    if every:
        st.text_input("Find", key=_SEARCH, type="search", placeholder="Words of name or model")
    found = saved.matching(every, st.session_state.get(_SEARCH) or "")
    st.caption(as_text(words.count_line(found, every)))
    if found:
        _draw_list(found[: words.SHOWN])


def _draw_save(names: set[str]) -> None:
    name = st.text_input(
        "Name",
        key=_NAME,
        max_chars=NAME_MAX,
        placeholder="What you will look for",
        help="The scenario of this page is kept under it, with the prices that it shows now.",
    )
    taken = saved.tidy(name or "") in names
    if taken:
        st.caption("There is one of that name: it would be replaced, and keep its short link.")
    _button("Replace" if taken else "Save", "saved_save", _save, taken)


def _draw_result() -> None:
    """Draw the result of the last button."""
    if done := st.session_state.pop(_DONE, None):
        st.success(as_text(done))
    if wrong := st.session_state.pop(_WRONG, None):
        st.error(as_text(wrong))
    if _UNDO in st.session_state:
        _button("Undo the deletion", "saved_bring_back", _undo)


def _draw_list(found: Sequence[SavedScenario]) -> None:
    by_id = {s.id: s for s in found}
    chosen = st.radio(
        "Which",
        list(by_id),
        index=None,
        key=_WHICH,
        format_func=lambda id: as_text(by_id[id].name) if id in by_id else "",
        captions=[as_text(words.line(s)) for s in found],
    )
    if chosen in by_id:
        _draw_one(by_id[chosen])


def _draw_one(which: SavedScenario) -> None:
    _button("Open this scenario", "saved_open", _open, which)
    st.caption("Short link. Whoever may see this page can open it, and change nothing here.")
    st.code(saved.short_address(which, st.context.url), language=None, wrap_lines=True)
    st.text_input("New name", key=_NEW_NAME, max_chars=NAME_MAX)
    _button("Rename", "saved_rename", _rename, which)
    _button("Delete", "saved_delete", _delete, which)


def _button(label: str, key: str, on_click: Callable[..., None], *args: object) -> None:
    st.button(label, key=key, on_click=on_click, args=args, width="stretch")


def _select(which: SavedScenario) -> None:
    """Select a scenario in the list, and clear the search so that it is listed."""
    st.session_state[_SEARCH], st.session_state[_WHICH] = "", which.id


def _run(action: Callable[[str], str]) -> None:
    """Run an action for the current user and keep its result; this drops an older undo."""
    st.session_state.pop(_UNDO, None)
    try:
        st.session_state[_DONE] = action(owner.current().id)
    except RuncastError as e:
        st.session_state[_WRONG] = str(e)


def _save(replace: bool) -> None:
    def action(who: str) -> str:
        name = st.session_state.get(_NAME) or ""
        kept = saved.keep(link.scenario(), owner=who, name=name, replace=replace)
        _select(kept)
        return words.saved_sentence(kept)

    _run(action)


def _open(which: SavedScenario) -> None:
    scenario, notes = saved.opened(which)
    link.edit(scenario, notes)
    web_form.fill(scenario)


def _rename(which: SavedScenario) -> None:
    def action(who: str) -> str:
        new = saved.rename(which.name, owner=who, to=st.session_state.get(_NEW_NAME) or "")
        st.session_state[_NEW_NAME] = ""
        _select(new)
        return words.saved_sentence(new)

    _run(action)


def _delete(which: SavedScenario) -> None:
    def action(who: str) -> str:
        deleted = saved.delete(which.name, owner=who)
        st.session_state[_UNDO] = deleted
        return words.deleted_sentence(deleted)

    _run(action)


def _undo() -> None:
    deleted = st.session_state.get(_UNDO)

    def action(who: str) -> str:
        if deleted is None or deleted.owner != who:
            return "There is nothing to bring back."
        saved.bring_back(deleted)
        _select(deleted)
        return words.saved_sentence(deleted)

    _run(action)
