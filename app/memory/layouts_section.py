"""Memory on the Memory & speed page: layouts compared, phases, and what does not fit."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import streamlit as st

from app.document.chart_files import Spec, spec_of
from app.document.escape import as_text
from app.explain import page as explain_page
from app.memory import charts, tables, words
from app.memory.layouts import Held, held_of, misses_of
from app.plan import words as plan_words
from app.scenario.layout import layout_text
from app.web import figure
from app.web.answers import KEPT_S, Key
from core.scenario import Scenario
from core.search.plan import Answer, Plan

KEPT = 128  # some 20 kB each
WHICH = "memory_too_large"
MINE = "memory_my_layout"


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner="Weighing the other layouts")
def _held(key: Key, plan_id: str, _scenario: Scenario, _plan: Plan) -> Held:
    return held_of(_plan)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _misses(key: Key, _scenario: Scenario) -> Held | None:
    return misses_of(_scenario)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _spec(key: Key, plan_id: str, what: str, theme: str, _held: Held) -> Spec:
    """The chart's specification; cached, because building it takes longer than its figures."""
    parts, heads = tables.phases(_held) if what == "phases" else tables.bars(_held)
    return spec_of(charts.stacked(parts, heads, tables.lines(_held.bars[0]), theme=theme))


def draw(scenario: Scenario, plan: Plan, key: Key) -> None:
    """Draw the plan's layout, the next ones and those that do not fit; then the phases."""
    held = _held(key, plan.id, scenario, plan)
    st.subheader("Memory of each layout", anchor=False, help=as_text(words.LAYOUTS_HELP))
    figure.draw(_layouts(held, _spec(key, plan.id, "layouts", figure.theme(), held)))
    draw_table("memory_layouts_table", "Layouts as a table", lambda: tables.layouts_shown(held))
    st.subheader("Memory by phase of a step", anchor=False, help=as_text(words.PHASES_HELP))
    figure.draw(
        figure.Figure(
            key="memory_phases",
            spec=_spec(key, plan.id, "phases", figure.theme(), held),
            alt=f"Memory per GPU by part in each phase of a step. {words.phases_sentence(held)}",
            file="runcast_memory_phases",
            data=lambda: tables.phases_data(held),
            caption=words.phases_sentence(held),
        )
    )
    draw_table("memory_phases_table", "Phases as a table", lambda: tables.phases_shown(held))


def _layouts(held: Held, spec: Spec) -> figure.Figure:
    sentence = words.layouts_sentence(held) if held.phases else words.misses_sentence(held)
    return figure.Figure(
        key="memory_layouts",
        spec=spec,
        alt=f"Memory per GPU by part, a bar for each layout. {sentence}",
        file="runcast_memory_layouts",
        data=lambda: tables.layouts_data(held),
        caption=sentence,
    )


def draw_table(key: str, title: str, made: Callable[[], pd.DataFrame]) -> None:
    """Draw the table of a chart's numbers as its text alternative; made when opened."""
    part = st.expander(title, key=key, on_change="rerun")
    if part.open:
        rows = made()
        part.table(rows.set_index(rows.columns[0]))


def draw_why_not(scenario: Scenario, plan: Plan, key: Key) -> None:
    """Draw what a layout that does not fit lacks, what would make it fit, and at what cost; also
    for a layout that the reader enters."""
    held = _held(key, plan.id, scenario, plan)
    st.subheader(
        "What does not fit, and what would help", anchor=False, help=as_text(words.FIX_HELP)
    )
    names = {
        layout_text(b.layout): f"{words.name(b)}, {words.room(b)}" for b in held.of("too_large")
    }
    if names:
        chosen = st.selectbox(
            "A layout that does not fit",
            list(names),
            key=WHICH,
            format_func=lambda text: names.get(text, text),
        )
        explain_page.draw_named(key[0], plan, chosen)
    else:
        st.caption("Every legal layout on these machines fits.")
    explain_page.draw_mine(key[0], plan, key=MINE)


def draw_nothing(scenario: Scenario, answer: Answer, key: Key) -> None:
    """Draw the case without a plan: the limit met, by how much, and the nearest change."""
    st.error(as_text(plan_words.answer_sentence(scenario, answer)))
    held = _misses(key, scenario)
    if held is None:
        st.caption(as_text(plan_words.coverage_line(answer)))
        return
    st.subheader("The nearest misses", anchor=False, help=as_text(words.LAYOUTS_HELP))
    figure.draw(_layouts(held, _spec(key, "", "layouts", figure.theme(), held)))
    draw_table("memory_layouts_table", "Layouts as a table", lambda: tables.layouts_shown(held))
