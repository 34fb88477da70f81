"""The Memory & speed page: where the bytes and the seconds of a plan go."""

from __future__ import annotations

import streamlit as st

from app import format as fmt
from app import link, memory_words, speed_tables, tables
from app.answers import key_of
from app.escape import as_text
from app.views import memory_layouts, memory_speed
from core.plan import Answer, Plan
from core.scenario import Scenario

LIST = "memory_plan"


def draw(scenario: Scenario, answer: Answer) -> None:
    """The page for a scenario and its answer."""
    key = key_of(scenario)
    plan = answer.chosen(scenario.plan)
    if plan is None:
        memory_layouts.draw_nothing(scenario, answer, key)
        return
    _draw_choice(answer, plan)
    _draw_numbers(plan)
    memory_layouts.draw(scenario, plan, key)
    memory_speed.draw(scenario, plan, key)
    memory_layouts.draw_why_not(scenario, plan, key)


def _chosen() -> None:
    link.choose(st.session_state[LIST])


def _draw_choice(answer: Answer, plan: Plan) -> None:
    labels = {p.id: tables.label(p) for p in answer.plans}
    st.session_state[LIST] = plan.id  # the scenario is the truth; the list only shows it
    st.selectbox(
        "Plan",
        list(labels),
        key=LIST,
        format_func=lambda plan_id: labels.get(plan_id, plan_id),
        on_change=_chosen,
        help="The same choice as on the Plan page",
    )
    st.caption(as_text(f"Its layout: {fmt.layout(plan.layout)}"))


def _draw_numbers(plan: Plan) -> None:
    peak = tables.peak_bytes(plan)
    left = plan.memory_capacity_bytes - peak
    numbers = (
        ("Peak memory per GPU", fmt.gib(peak), memory_words.PEAK_HELP),
        ("Left of the capacity", fmt.gib(left), memory_words.HEADROOM_HELP),
        ("One step", fmt.seconds(sum(plan.step_s.values())), speed_tables.WATERFALL_HELP),
        ("Tokens/s", fmt.tokens(plan.tokens_per_s.p50), speed_tables.SCALING_HELP),
    )
    for column, (label, value, about) in zip(st.columns(len(numbers)), numbers, strict=True):
        column.metric(label, as_text(value), help=as_text(about), border=True)
