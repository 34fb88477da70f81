"""What of the Plan page depends on the order of its plans: answer, ranked table, choice, links.

Another order or a pin draws these parts and nothing else: charts, facts and measured runs are of
the selected plan, which stays selected. Whatever changes more draws the whole page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.document import format as fmt
from app.document.durations import in_one_unit, of_days
from app.document.escape import as_text
from app.explain import page as explain_page
from app.forecast import price_book
from app.plan import answer_section, batch_words, cards, document, products, words
from app.plan.decided import recommended_sentence
from app.prices import price_age_section
from app.provenance import hints as provenance_hints
from app.report import share_section
from app.scenario.link import address_of, is_reordered
from app.web import figure, first_look, link
from app.web import form as web_form
from app.web.answers import answer_of
from app.web.fragment import alone
from app.web.selection import chosen
from core.errors import RuncastError
from core.scenario import Scenario
from core.scenario.types import MOST_PINNED
from core.search.plan import Answer, Plan

TABLE = "plan_table"
LIST = "plan_list"
PINNED = "plan_pinned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a page shows: the scenario, its answer, the selected plan."""

    scenario: Scenario
    answer: Answer
    selected: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where on the page the parts stand that are not beside the ranked table."""

    top: DeltaGenerator
    choice: DeltaGenerator
    why: DeltaGenerator
    share: DeltaGenerator


@alone
def draw(
    asked: Scenario,
    shown: Shown,
    places: Places,
    options: web_form.Options,
    draw_link: Callable[[], None],
    draw_tabs: Callable[[], None],
) -> None:
    """Draw the parts. `asked` is the scenario of the link for which the page has been drawn."""
    now = shown if link.scenario() == asked else _in_new_order(asked, shown.selected)
    if now is None:
        st.rerun(scope="app")
    if not first_look.is_awaited():
        link.write_in_part(now.answer.plans[0].id)
    scenario, answer, selected = now.scenario, now.answer, now.selected
    draw_tabs()
    with places.top:
        _draw_headlines(scenario, answer, selected)
    _draw_ranked(scenario, answer, selected, options)
    with places.choice:
        _draw_choice(scenario, answer, selected)
    with places.why, st.container():  # of this fragment: inner ones would be drawn twice
        draw_link()
        explain_page.draw(scenario, answer, selected)
    with places.share, st.container():
        share_section.draw(scenario, answer, selected)


def _in_new_order(asked: Scenario, selected: Plan) -> Shown | None:
    """The answer in the order that the link has now. None if the whole page has to be drawn: more
    has changed than the order and the pins, or the answer takes a while."""
    scenario = link.scenario()
    if not is_reordered(asked, scenario) or scenario.stages or link.notes():
        return None
    if price_age_section.is_refreshing() or first_look.of(scenario) is not None:
        return None
    try:
        answer = answer_of(scenario)
    except RuncastError:
        return None
    plan = chosen(scenario, answer)
    return (
        Shown(scenario=scenario, answer=answer, selected=plan) if plan.id == selected.id else None
    )


def _draw_headlines(scenario: Scenario, answer: Answer, selected: Plan) -> None:
    today = price_book.today()
    st.markdown(f"**{as_text(words.answer_sentence(scenario, answer, today))}**")
    if few := batch_words.few_steps(scenario, selected):
        st.warning(as_text(few))
    headlines = cards.headlines(scenario, answer, selected, today)
    row = st.container(horizontal=True, key="plan_cards")
    for line in headlines:
        with row.container(border=True, height="stretch", gap="xsmall"):
            about = line.about
            if line.of is not None:
                about += f": {provenance_hints.hint(*line.of, today)}"
            st.metric(line.label, as_text(line.value), help=as_text(about))
            st.caption("  \n".join(map(as_text, line.lines)))
    st.caption(as_text(recommended_sentence(scenario, answer)))


def _draw_ranked(
    scenario: Scenario,
    answer: Answer,
    selected: Plan,
    options: web_form.Options,
) -> None:
    st.subheader("Ranked plans")
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    with left:
        web_form.draw_field(
            "rank_by", options, horizontal=True,
            on_change=partial(web_form.take_order, selected.id),
        )  # fmt: skip
    table = document.ranked(scenario, answer.plans)
    address = address_of(scenario, st.context.url)
    figure.draw_csv(right, table.frame, file="runcast_plans", key="plan_csv", address=address)
    key = f"{TABLE}_{link.generation()}"
    empty = () if any(p.against for p in answer.plans) else (document.AGAINST,)
    shown = products.once(table.frame(), np.array([p.id == selected.id for p in answer.plans]))
    ids = tuple(answer.plans[row].id for row in shown.index)
    listed = in_one_unit(shown[products.on_page(shown.columns, without=empty)])
    st.dataframe(
        listed,
        key=key,
        hide_index=True,
        height=388,
        column_config=_columns(listed),
        placeholder=fmt.MISSING,
        on_select=lambda: _row_chosen(ids, key),
        selection_mode="single-row-required",
        selection_default={
            "selection": {"rows": [ids.index(selected.id)], "columns": [], "cells": []}
        },
        alt=table.caption,
    )


def _columns(listed: pd.DataFrame) -> dict[str, Any]:
    """Widths, number formats and explanations of the ranked table's columns."""
    formats = products.formats(listed)
    widths = {"#": 45, "GPUs": 65, "Cloud": 95, "Instance": 150, "Region": 95, "Purchase": 95}
    about = {"#": "Rank", **provenance_hints.COLUMNS}
    columns: dict[str, Any] = {}
    for name in listed.columns:
        head = of_days(name)
        given: dict[str, Any] = {"width": widths.get(name), "help": about.get(head)}
        if head in formats:
            columns[name] = st.column_config.NumberColumn(**given, format=formats[head])
        else:
            columns[name] = st.column_config.Column(**given, pinned=True if name == "#" else None)
    return columns


def _draw_choice(scenario: Scenario, answer: Answer, plan: Plan) -> None:
    st.subheader("Selected plan")
    st.session_state[PINNED] = plan.id in scenario.pinned
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    about = "The same choice as a row of the table or a point of the chart"
    answer_section.draw_choice(left, answer, plan, key=LIST, about=about)
    right.checkbox(
        "Pinned",
        key=PINNED,
        on_change=_pinned,
        args=(plan.id,),
        disabled=len(scenario.pinned) >= MOST_PINNED and plan.id not in scenario.pinned,
        help="Up to four pinned plans stand side by side on Compare; kept in the link",
    )


def _row_chosen(ids: tuple[str, ...], key: str) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        link.choose(ids[rows[0]])


def _pinned(plan_id: str) -> None:
    link.pin(plan_id, pinned=bool(st.session_state[PINNED]))
