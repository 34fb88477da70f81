"""A programme on pages: its stages as a table to edit, a timeline, and what each costs."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from app.document import chart_files, page
from app.document.escape import as_text
from app.programme import charts, document
from app.programme.programme import Programme, programme_of
from app.programme.rows import COLUMNS, HELP, MORE, rows_of, stages_of, starting_rows
from app.programme.ways import ways_to_buy
from app.programme.words import ASSUMED, RESERVED, sentences, turned_sentence
from app.scenario.fields import written
from app.scenario.link import changed
from app.web import figure, first_look, link
from app.web.answers import staged
from app.web.fragment import alone
from core.errors import RuncastError
from core.scenario import Scenario

OPEN, CLOSED = "programme_open", "programme_closed"


@alone
def draw(drawn: Scenario) -> None:
    """Draw the section, closed for one run; a link with stages opens it."""
    number = len(drawn.stages)
    name = f"Programme of runs ({number} stages)" if number else "Programme of runs"
    key = OPEN if number else CLOSED  # two sections: one stands open from the start
    st.session_state.setdefault(key, number > 0)
    part = st.expander(name, key=key, on_change="rerun")
    if part.open:
        with part:
            _draw_editor(drawn)
            if number and not first_look.is_awaited():
                _draw_answer(drawn)


def _draw_editor(scenario: Scenario) -> None:
    """The stages as a table; what is left empty is taken from the form."""
    rows = rows_of(scenario.stages)
    if not rows:
        rows = starting_rows(written(scenario.num_tokens), scenario.seq_len)
        st.caption("Three stages to begin with: change them, add rows, and use them.")
    with st.form("programme_form", border=False):
        edited = st.data_editor(
            pd.DataFrame(rows, columns=[*COLUMNS, MORE], dtype=object),
            key=f"programme_rows_{link.generation()}",
            num_rows="dynamic",
            hide_index=True,
            column_config={
                head: st.column_config.TextColumn(help=about) for head, about in HELP.items()
            },
        )
        left, right = st.columns([3, 1], vertical_alignment="bottom")
        may_move = left.checkbox(
            "Stages may move to machines of their own",
            value=scenario.stages_may_move,
            key=f"programme_move_{link.generation()}",
        )
        if right.form_submit_button("Use these stages", type="primary", width="stretch"):
            _take(edited.to_dict("records"), may_move=may_move)
    if scenario.stages:
        st.button("Back to one run", key="programme_clear", type="tertiary", on_click=_clear)
    now = link.scenario()
    if (now.stages, now.stages_may_move) != (scenario.stages, scenario.stages_may_move):
        st.rerun(scope="app")


def _take(rows: list[dict[Any, Any]], *, may_move: bool) -> None:
    """Put the edited stages into the link, or say what is wrong with them."""
    try:
        link.edit(changed(link.scenario(), stages=stages_of(rows), stages_may_move=may_move))
    except ValueError as e:
        st.error(as_text(e.as_labelled if isinstance(e, RuncastError) else f"Stages: {e}."))


def _clear() -> None:
    link.edit(changed(link.scenario(), stages=(), stages_may_move=False))


def draw_sentence(letter: str, scenario: Scenario) -> None:
    """Draw what all stages of one of two scenarios cost, if it has any."""
    if scenario.stages and (found := _found(scenario)):
        st.markdown(as_text(f"{letter}, with all stages: {sentences(scenario, found)[0]}"))


def draw_ways(scenario: Scenario) -> None:
    """Draw the ways to buy the machines of all stages, if there are any."""
    if not (scenario.stages and (found := _found(scenario)) and found.contracts):
        return
    st.subheader("All stages", anchor=False)
    st.markdown(as_text(sentences(scenario, found)[0]))
    if turned := turned_sentence(scenario, found.best):
        st.markdown(as_text(turned))
    ways = staged(scenario, lambda memory: ways_to_buy(scenario, found.best, memory=memory), "ways")
    for table in (document.risk(found.best), *((document.ways(ways),) if ways else ())):
        st.markdown(f"**{as_text(table.caption)}**")
        page.draw_table(table)
    if ways:
        st.caption(RESERVED)


def _found(scenario: Scenario) -> Programme | None:
    """The answer for the stages, or None, with the mistake drawn."""
    try:
        return staged(scenario, lambda memory: programme_of(scenario, memory=memory))
    except RuncastError as e:
        st.error(as_text(str(e)))
        return None


def _draw_answer(scenario: Scenario) -> None:
    """The sentence, the timeline, the stages, and what each changes."""
    if (found := _found(scenario)) is None:
        return
    first, *more = sentences(scenario, found)
    st.markdown(f"**{as_text(first)}**")
    page.draw_list(more)
    if not found.contracts:
        return
    best = found.best
    figure.draw(
        figure.Figure(
            key="programme_timeline",
            spec=chart_files.spec_of(charts.timeline(document.bars(best), theme=figure.theme())),
            alt=document.alt(best),
            caption=charts.LEGEND,
            file="runcast_programme",
            data=lambda: document.stages(best).frame(),
        )
    )
    for block in document.tables(found):
        st.markdown(f"**{as_text(block.caption)}**")
        page.draw_table(block)
    page.draw_list(ASSUMED, "Assumed")
