"""The Memory & speed page: where the bytes and the seconds of a plan go."""

from __future__ import annotations

import streamlit as st

from app.document import format as fmt
from app.document.escape import as_text
from app.document.glossary import explained
from app.memory import layouts_section, speed_section, speed_tables, words
from app.plan import answer_section
from app.plan import document as plan_document
from app.web.answers import key_of
from core.scenario import Scenario
from core.search.plan import Answer, Plan

LIST = "memory_plan"


def draw(scenario: Scenario, answer: Answer) -> None:
    """Draw the page for a scenario and its answer."""
    key = key_of(scenario)
    plan = answer.chosen(scenario.plan)
    if plan is None:
        layouts_section.draw_nothing(scenario, answer, key)
        return
    answer_section.draw_choice(
        st.container(), answer, plan, key=LIST, about="The same choice as on the Plan page"
    )
    st.caption(
        as_text(f"Its layout: {fmt.layout(plan.layout)}"), help=explained(fmt.layout(plan.layout))
    )
    _draw_numbers(plan)
    layouts_section.draw(scenario, plan, key)
    speed_section.draw(scenario, plan, key)
    layouts_section.draw_why_not(scenario, plan, key)


def _draw_numbers(plan: Plan) -> None:
    peak = plan_document.peak_bytes(plan)
    left = plan.memory_capacity_bytes - peak
    numbers = (
        ("Peak memory per GPU", fmt.gib(peak), words.PEAK_HELP),
        ("Left of the capacity", fmt.gib(left), words.HEADROOM_HELP),
        ("One step", fmt.seconds(sum(plan.step_s.values())), speed_tables.WATERFALL_HELP),
        ("Tokens/s", fmt.tokens(plan.tokens_per_s.p50), speed_tables.SCALING_HELP),
    )
    for column, (label, value, about) in zip(st.columns(len(numbers)), numbers, strict=True):
        column.metric(label, as_text(value), help=as_text(about), border=True)
