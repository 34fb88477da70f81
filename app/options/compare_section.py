"""Plans side by side on the Options page: the pinned ones, or those of two links."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import streamlit as st

from app.document import format as fmt
from app.document.csv import csv_bytes
from app.document.escape import as_text
from app.document.glossary import explained
from app.options import side_by_side, side_by_side_words, two_links
from app.options.side_by_side import Row, Subject
from app.programme import stages_section
from app.scenario.link import address_of
from app.web import answers, copy_button, link
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer

OTHER = "options_other_link"
BASE = "options_baseline"
TERMS = "MFU, HFU, Goodput, GPU-hours, P10, P90, Recompute, Out of memory, CO2e"
MOST_TERMS = 900


def draw_pinned(scenario: Scenario, answer: Answer, today: dt.date) -> None:
    """The pinned plans side by side, and their differences in words."""
    st.subheader("Side by side", anchor=False, help=explained(TERMS, MOST_TERMS))
    of_id = {p.id: p for p in answer.plans}
    pinned = [of_id[plan_id] for plan_id in scenario.pinned if plan_id in of_id]
    if len(pinned) < 2:
        st.info(
            "Pin two to four plans to hold them against each other: choose rows of the table, or "
            "plans in the list under it."
        )
        return
    compared = side_by_side.subjects(scenario, pinned)
    names = {s.plan.id: s.name for s in compared}
    st.session_state[BASE] = pinned[0].id  # the first pin is the base
    st.selectbox(
        "Compare with",
        list(names),
        key=BASE,
        format_func=lambda plan_id: names.get(plan_id, plan_id),
        on_change=_base_chosen,
        help="Becomes A: every difference is against it",
        width=420,
    )
    _draw_compared(compared, today, "options_compared")
    copy_button.draw(
        "Copy link to this comparison",
        address_of(scenario, st.context.url),
        key="options_compared_copy",
    )


def _base_chosen() -> None:
    """Move a pinned plan to the front: the others are compared with it."""
    first, pinned = str(st.session_state[BASE]), link.scenario().pinned
    link.look(pinned=(first, *(p for p in pinned if p != first)))


def _draw_compared(compared: Sequence[Subject], today: dt.date, key: str) -> None:
    found = side_by_side.rows(compared, today)
    names = [s.name for s in compared]
    for of_plan in side_by_side_words.sentences(compared):
        st.markdown("\n".join(f"- {as_text(sentence)}" for sentence in of_plan))
    differ, same = side_by_side.differing(found)
    _draw_rows(differ, names)
    st.caption(
        "In brackets: more or less than A. Medians unless a row names another figure; P10 to P90 "
        "is the error of the forecast, not of prices."
    )
    part = st.expander(f"What is the same: {len(same)} rows", key=f"{key}_same", on_change="rerun")
    if part.open:
        with part:
            _draw_rows(same, names[:1])
    address = address_of(link.scenario(), st.context.url)
    st.download_button(
        "Comparison as CSV",
        data=lambda: csv_bytes(side_by_side.file(found, names), address),
        file_name="runcast_comparison.csv",
        mime="text/csv",
        key=f"{key}_csv",
        on_click="ignore",
    )


def _draw_rows(found: Sequence[Row], names: Sequence[str]) -> None:
    frame = side_by_side.table(found, names)
    st.table(frame.map(as_text).rename(index=as_text, columns=as_text), border="horizontal")


# --- two links -----------------------------------------------------------------------------------


def draw_other_link(scenario: Scenario, answer: Answer, today: dt.date) -> None:
    """A field for another link, and a comparison of its scenario and plan with the page's."""
    st.subheader("Side by side with another link", anchor=False)
    text = st.text_area(
        "Another link, or what stands behind its question mark",
        key=OTHER,
        height=80,
        placeholder="https://.../?v=1&model=llama3.1-70b&...",
        persist_state="session",
    )
    if not text.strip():
        return
    try:
        other, notes = two_links.parsed(text)
        other_answer = answers.answer_of(other)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    for note in notes:
        st.warning(as_text(note))
    _draw_differences(scenario, other)
    here, named = two_links.plan_of(scenario, answer)
    there, also_named = two_links.plan_of(other, other_answer)
    if here is None or there is None:
        which = "the other link" if there is None else "this link"
        st.error(f"There is no plan for {which}, so that there are no two to hold side by side.")
        return
    st.markdown(as_text(f"A is {named} of this page, B is {also_named} of the other link."))
    compared = (
        Subject(letter="A", scenario=scenario, plan=here),
        Subject(letter="B", scenario=other, plan=there),
    )
    _draw_compared(compared, today, "options_links")
    for subject in compared:
        stages_section.draw_sentence(subject.letter, subject.scenario)


def _draw_differences(scenario: Scenario, other: Scenario) -> None:
    found = two_links.differences(scenario, other)
    if found.empty:
        st.markdown("Both links ask the same.")
        return
    fields = "1 field" if len(found) == 1 else f"{fmt.count(len(found))} fields"
    st.markdown(f"The two links differ in {fields}:")
    st.table(found.map(as_text).set_index("Field"), border="horizontal")
