"""The list for selecting a plan, on every page about one plan."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.plan import document as plan_document
from app.web import link
from core.search.plan import Answer, Plan


def draw(place: DeltaGenerator, answer: Answer, plan: Plan, *, key: str, about: str) -> None:
    """Draw the list of plans with the selected one; the choice applies to every page."""
    labels = {p.id: plan_document.label(p) for p in answer.plans}
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
