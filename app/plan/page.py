"""The Plan page: the answer first, then the choice, then the chosen plan in detail."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import streamlit as st

from app.document.escape import as_text
from app.document.page import draw_list, draw_table
from app.forecast import price_book
from app.plan import (
    answer_section,
    charts,
    document,
    figures,
    ordered_section,
    quote_section,
    similar_runs,
    words,
)
from app.prices import price_age_section
from app.programme import stages_section
from app.provenance import page as provenance_page
from app.report import share_section
from app.scenario.layout import layout_text
from app.scenario.link import Query, query_of
from app.web import figure, link
from app.web import form as web_form
from app.web.answers import KEPT_S
from app.web.selection import chosen
from core.scenario import Scenario
from core.search.plan import Answer, Plan

TABLE = "plan_table"
LIST = "plan_list"
PINNED = "plan_pinned"
MEASURED = "plan_measured"
LEFT_OUT = "plan_left_out"


@st.cache_data(max_entries=figures.KEPT, ttl=KEPT_S, show_spinner=False)
def _also(query: Query, book: str, _scenario: Scenario, _answer: Answer) -> tuple[str, ...]:
    return words.also_sentences(_scenario, _answer)


def draw(
    scenario: Scenario,
    answer: Answer,
    options: web_form.Options,
    draw_link: Callable[[], None],
    draw_tabs: Callable[[], None],
) -> None:
    """Draw the page for a scenario and its answer; `draw_link` leads to the plan's memory and
    speed, `draw_tabs` to the other pages."""
    today = price_book.today()
    if not answer.plans:
        _draw_nothing(scenario, answer)
        return
    selected = chosen(scenario, answer)
    # What depends on the order is drawn by one function into five places, before what it does not:
    # the first of them is the answer.
    top, limits, table, also, choice, plan, why, runs, share = (st.container() for _ in range(9))
    places = ordered_section.Places(top=top, choice=choice, why=why, share=share)
    shown = ordered_section.Shown(scenario=scenario, answer=answer, selected=selected)
    with table:
        ordered_section.draw(link.scenario(), shown, places, options, draw_link, draw_tabs)
    with limits:
        stages = st.container() if scenario.stages else None  # the answer, so they stand high
        figures.draw_frontier(scenario, answer, selected, _point_chosen)
        price_age_section.draw(scenario, answer)
        quote_section.draw(scenario)
        stages = stages or st.container()
    with also:
        if found := _also(query_of(scenario), price_book.book_id(scenario), scenario, answer):
            draw_list(found, "Also")
    with plan:
        _draw_selected(scenario, answer, selected, today)
    with runs:
        _draw_similar(selected)
        _draw_measured(scenario, selected)
        draw_list(selected.assumptions, "What is assumed")
    st.caption(as_text(words.coverage_sentence(answer)))
    answer_section.draw_excluded(answer, LEFT_OUT)
    with stages:  # last, so that its search keeps nothing waiting
        stages_section.draw(scenario)


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


def _draw_selected(scenario: Scenario, answer: Answer, plan: Plan, today: dt.date) -> None:
    if badges := words.badges(plan, today):
        st.markdown(" ".join(f":orange-badge[{as_text(badge)}]" for badge in badges))
    _draw_facts(document.facts(scenario, plan, today))
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


def _draw_similar(plan: Plan) -> None:
    """Draw the published runs that moved the plan's forecast, with their weights."""
    runs = similar_runs.similar_runs(plan)
    st.markdown("**Correction from similar runs**")
    if runs:
        draw_table(similar_runs.table(runs))
    st.caption(as_text(similar_runs.sentence(plan, runs)))


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
    """Draw one element, in columns by page.css: the browser redraws every element on each edit."""
    lines = (f":gray[:small[{as_text(name)}]]  \n{as_text(text)}" for name, text in facts)
    st.container(key="plan_facts").markdown("\n\n".join(lines))
