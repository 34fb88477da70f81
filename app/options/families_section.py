"""Layouts side by side on the Compare page: the best of each family, and a layout of the user's."""

from __future__ import annotations

import streamlit as st

from app.document.escape import as_text
from app.document.page import draw_rows
from app.explain import page as explain_page
from app.options import families
from app.scenario.link import Query
from app.web.answers import KEPT_S
from app.web.fragment import alone
from core.scenario import Scenario
from core.search.plan import Plan

KEPT = 64  # cached answers, a few kB each
OPEN, MINE = "options_families", "options_my_layout"


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner="Trying every family of layouts")
def _families(
    query: Query, book_id: str, plan_id: str, _scenario: Scenario, _plan: Plan
) -> tuple[families.Family, ...]:
    return families.families(_scenario, _plan)


@alone
def draw(query: Query, book_id: str, scenario: Scenario, plan: Plan, machine: str) -> None:
    """Draw the part; it is computed only while it is open."""
    part = st.expander(f"Layouts side by side on {machine}", key=OPEN, on_change="rerun")
    if not part.open:
        return
    with part:
        found = _families(query, book_id, plan.id, scenario, plan)
        table = families.table(found)
        draw_rows(table, "options_families_table", table.caption, is_whole=True)
        st.caption(
            as_text(
                "The fastest layout of each family that fits and has launch files, else the one "
                "that lacks least memory. Time and cost are those of a run without failures."
            )
        )
        explain_page.draw_mine(query, plan, key=MINE)
