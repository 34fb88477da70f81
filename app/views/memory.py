"""The Memory & speed page: where the bytes and the seconds of a plan go."""

from __future__ import annotations

import streamlit as st

from app import format as fmt
from app import memory_words, speed_tables, tables
from app.answers import key_of
from app.escape import as_text
from app.glossary import explained
from app.views import memory_layouts, memory_speed, plan_choice
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
    plan_choice.draw(
        st.container(), answer, plan, key=LIST, about="The same choice as on the Plan page"
    )
    st.caption(
        as_text(f"Its layout: {fmt.layout(plan.layout)}"), help=explained(fmt.layout(plan.layout))
    )
    _draw_numbers(plan)
    memory_layouts.draw(scenario, plan, key)
    memory_speed.draw(scenario, plan, key)
    memory_layouts.draw_why_not(scenario, plan, key)


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
