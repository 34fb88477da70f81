"""The Plan page: the answer first, then the choice, then the chosen plan in detail."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from app.document import format as fmt
from app.document.durations import in_one_unit, of_days
from app.document.escape import as_text
from app.document.page import draw_list, draw_table
from app.explain import page as explain_page
from app.forecast import price_book
from app.forecast.with_failures import WithFailures, of_plans
from app.plan import (
    answer_section,
    batch_words,
    cards,
    charts,
    document,
    figures,
    neighbours,
    neighbours_table,
    products,
    quote_section,
    words,
)
from app.plan.decided import recommended_sentence
from app.prices import price_age_section
from app.programme import stages_section
from app.provenance import hints as provenance_hints
from app.provenance import page as provenance_page
from app.report import share_section
from app.scenario.layout import layout_text
from app.scenario.link import Query, address_of, query_of
from app.web import figure, link
from app.web import form as web_form
from app.web.answers import KEPT_S
from app.web.fragment import alone
from app.web.selection import chosen
from core.scenario import Scenario
from core.scenario.types import MOST_PINNED
from core.search.plan import Answer, Plan

TABLE = "plan_table"
LIST = "plan_list"
PINNED = "plan_pinned"
MEASURED = "plan_measured"
LEFT_OUT = "plan_left_out"
FACTS_A_COLUMN = 6


@st.cache_data(max_entries=figures.KEPT, ttl=KEPT_S, show_spinner=False)
def _also(query: Query, book: str, _scenario: Scenario, _answer: Answer) -> tuple[str, ...]:
    return words.also_sentences(_scenario, _answer)


def draw(
    scenario: Scenario, answer: Answer, options: web_form.Options, draw_link: Callable[[], None]
) -> None:
    """Draw the page for a scenario and its answer; `draw_link` leads to the plan's memory and
    speed."""
    today = price_book.today()
    theme = figure.theme()
    if not answer.plans:
        _draw_nothing(scenario, answer)
        return
    selected = chosen(scenario, answer)
    st.markdown(f"**{as_text(words.answer_sentence(scenario, answer, today))}**")
    if few := batch_words.few_steps(scenario, selected):
        st.warning(as_text(few))
    _draw_headlines(scenario, answer, selected, today)
    st.caption(as_text(recommended_sentence(scenario, answer)))
    stages = st.container() if scenario.stages else None  # they are the answer, so they stand high
    figures.draw_frontier(scenario, answer, selected, _point_chosen)
    price_age_section.draw(scenario, answer)
    quote_section.draw(scenario)
    stages = stages or st.container()
    failing = of_plans(scenario, answer.plans)
    _draw_ranked(scenario, answer, selected, failing, options)
    if also := _also(query_of(scenario), price_book.book_id(scenario), scenario, answer):
        draw_list(also, "Also")
    its_own = failing[answer.plans.index(selected)]
    _draw_selected(scenario, answer, selected, its_own, today, theme, draw_link)
    share_section.draw(scenario, answer, selected)
    st.caption(as_text(words.coverage_sentence(answer)))
    answer_section.draw_excluded(answer, LEFT_OUT)
    with stages:  # last, so that its search keeps nothing waiting
        stages_section.draw(scenario)


def _row_chosen(ids: tuple[str, ...], key: str) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        link.choose(ids[rows[0]])


def _pinned(plan_id: str) -> None:
    link.pin(plan_id, pinned=bool(st.session_state[PINNED]))


def _point_chosen() -> None:
    picked = st.session_state[figures.FRONTIER]["selection"].get(charts.PICK) or []
    if picked and "id" in picked[0]:
        link.choose(str(picked[0]["id"]))
        link.redraw()


def _draw_nothing(scenario: Scenario, answer: Answer) -> None:
    st.error(as_text(words.answer_sentence(scenario, answer)))
    st.caption(as_text(words.coverage_sentence(answer)))
    price_age_section.draw(scenario, answer)
    quote_section.draw(scenario)
    answer_section.draw_excluded(answer, LEFT_OUT, is_open=True)
    share_section.draw(scenario, answer, None)
    stages_section.draw(scenario)


def _draw_headlines(scenario: Scenario, answer: Answer, selected: Plan, today: dt.date) -> None:
    headlines = cards.headlines(scenario, answer, selected, today)
    for column, line in zip(st.columns(len(headlines)), headlines, strict=True):
        with column, st.container(border=True, height="stretch", gap="xsmall"):
            about = line.about
            if line.of is not None:
                about += f": {provenance_hints.hint(*line.of, today)}"
            st.metric(line.label, as_text(line.value), help=as_text(about))
            st.caption("  \n".join(map(as_text, line.lines)))


def _draw_ranked(
    scenario: Scenario,
    answer: Answer,
    selected: Plan,
    failing: Sequence[WithFailures],
    options: web_form.Options,
) -> None:
    st.subheader("Ranked plans")
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        web_form.draw_field("rank_by", options, horizontal=True)
    table = document.ranked(scenario, answer.plans, failing)
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


def _draw_selected(
    scenario: Scenario,
    answer: Answer,
    plan: Plan,
    failing: WithFailures,
    today: dt.date,
    theme: str,
    draw_link: Callable[[], None],
) -> None:
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
    with st.container(horizontal=True, gap="small"):
        for badge in words.badges(plan, today):
            st.badge(as_text(badge), color="orange")
    _draw_facts(document.facts(scenario, plan, failing, today))
    st.caption(as_text(words.batch_advice(scenario).sentence))
    provenance_page.draw(scenario, answer, plan)

    memory, step = figures.memory_and_step(plan)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        st.markdown("**Memory per GPU**")
        figure.draw(memory)
    with right:
        st.markdown("**Time of one step**")
        figure.draw(step)
    draw_link()

    explain_page.draw(scenario, answer, plan, theme)
    _draw_neighbours(scenario, plan)
    _draw_measured(scenario, plan)
    draw_list(plan.assumptions, "What is assumed")


def _draw_neighbours(scenario: Scenario, plan: Plan) -> None:
    found = neighbours.nearest(scenario, plan)
    if not found:
        return
    st.markdown("**Nearest measured runs**")
    draw_table(neighbours_table.table(found))
    st.caption(as_text(neighbours_table.sentence(found)))
    _draw_sources(found)


@alone
def _draw_sources(found: Sequence[neighbours.Neighbour]) -> None:
    part = st.popover("Where they were published", key="plan_neighbour_sources", on_change="rerun")
    if part.open:
        with part:
            draw_list(f"{n.run_id}: {n.source} ({n.source_date})" for n in found)


def _measured(gpu: str, num_gpus: int, layout: str) -> None:
    given = str(st.session_state[MEASURED])
    web_form.take_measurement(given, gpu=gpu, num_gpus=num_gpus, layout=layout)


def _draw_measured(scenario: Scenario, plan: Plan) -> None:
    """Draw the form in which a user who ran this plan enters its measured speed."""
    here = (plan.offer.accelerator, plan.num_gpus, layout_text(plan.layout))
    of_this = here == (scenario.anchor_gpu, scenario.anchor_num_gpus, scenario.anchor_layout)
    if "measurement" not in web_form.errors():  # otherwise the wrong text stays for correction
        speed = scenario.anchor_tokens_per_s_per_gpu if of_this else None
        st.session_state[MEASURED] = "" if speed is None else f"{speed:.12g}"
    st.text_input(
        "Measured this plan? Tokens/s per GPU",
        key=MEASURED,
        max_chars=40,
        placeholder=f"forecast: {plan.tokens_per_s_per_gpu:,.0f}",
        on_change=_measured,
        args=here,
        help="Moves every forecast and narrows it; kept in the link. Empty: not measured.",
        width=320,
    )
    if "measurement" in web_form.errors():
        st.error(as_text(web_form.errors()["measurement"]))


def _draw_facts(facts: list[tuple[str, str]]) -> None:
    """Draw one element per column: the browser redraws every element on each edit."""
    groups = [facts[i : i + FACTS_A_COLUMN] for i in range(0, len(facts), FACTS_A_COLUMN)]
    for column, group in zip(st.columns(len(groups)), groups, strict=True):
        lines = (f":gray[:small[{as_text(name)}]]  \n{as_text(text)}" for name, text in group)
        column.markdown("\n\n".join(lines))
