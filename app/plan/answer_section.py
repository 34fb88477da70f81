"""Sections of several pages: the list that selects a plan, and what a search excluded."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.document.escape import as_text
from app.plan import document, words
from app.web import link
from core.search.plan import Answer, Plan


def draw_choice(place: DeltaGenerator, answer: Answer, plan: Plan, *, key: str, about: str) -> None:
    """Draw the list of plans with the selected one; the choice applies to every page."""
    labels = {p.id: document.label(p) for p in answer.plans}
    st.session_state[key] = plan.id  # the scenario decides; the list only shows it
    place.selectbox(
        "Plan",
        list(labels),
        key=key,
        format_func=lambda plan_id: labels.get(plan_id, plan_id),
        on_change=_chosen,
        args=(key, tuple(labels)),
        help=about,
    )


def _chosen(key: str, ids: tuple[str, ...]) -> None:
    if (plan_id := st.session_state[key]) in ids:  # otherwise the list has changed in the meantime
        link.choose(plan_id)
        link.redraw()


def draw_excluded(answer: Answer, key: str, *, is_open: bool = False) -> None:
    """Draw what was excluded, if anything was. Its table is made only while the part is open."""
    if not answer.excluded:
        return
    part = st.expander("What was left out, and why", expanded=is_open, key=key, on_change="rerun")
    if not part.open:
        return
    with part:
        st.caption(as_text(words.search_line(answer)))
        st.dataframe(
            document.excluded(answer).texts(),
            key=f"{key}_table",
            hide_index=True,
            column_config={"Left out": st.column_config.TextColumn(width=90)},
            alt="What was left out",
        )
