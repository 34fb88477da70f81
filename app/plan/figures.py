"""The charts of the Plan page, built once per answer for all users."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app.document import format as fmt
from app.document.chart_files import Spec, spec_of
from app.plan import charts, document
from app.web import answers, figure
from app.web.answers import KEPT_S
from app.web.figure import Figure
from core.scenario import Scenario
from core.search.plan import Answer, Plan

KEPT = 64  # cached specs, up to 100 kB each
FRONTIER = "plan_chart"


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _pareto(
    key: answers.Key, theme: str, _scenario: Scenario, _answer: Answer
) -> tuple[Spec, dict[str, charts.Place], str]:
    """The chart, the positions of its plans, and its alternative text; empty without a price."""
    points = document.points(_answer)
    if points.empty:
        return {}, {}, ""
    with charts.checked(False):  # tests build these charts with every part validated
        chart = charts.pareto(
            points,
            budget_usd=_scenario.budget_usd,
            deadline_days=_scenario.deadline_days,
            budget_text=f"Budget {fmt.usd_short(_scenario.budget_usd)}",
            deadline_text=f"Deadline {fmt.days((_scenario.deadline_days or 0) * 24)}",
            theme=theme,
        )
        spec = spec_of(chart)
    return spec, charts.places(points), document.frontier_sentence(points)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _parts(key: answers.Key, plan_id: str, theme: str, _plan: Plan) -> tuple[Spec, Spec]:
    with charts.checked(False):
        memory = charts.memory_bar(
            document.memory(_plan),
            capacity_gib=document.capacity_gib(_plan),
            capacity_text=f"Usable {fmt.gib(_plan.memory_capacity_bytes)}",
            theme=theme,
        )
        step = charts.step_waterfall(document.step(_plan), theme=theme)
        return spec_of(memory), spec_of(step)


def draw_frontier(
    scenario: Scenario, answer: Answer, selected: Plan, on_pick: Callable[[], None]
) -> None:
    """Draw cost against time with the selected plan; a click on a frontier point selects it."""
    free = document.free_sentence(answer)
    spec, places, shown = _pareto(answers.key_of(scenario), figure.theme(), scenario, answer)
    if not places:
        st.info(free or "No plan here has a price, so there is no chart of cost against time.")
        return
    drawn = Figure(
        key=FRONTIER,
        spec=charts.here(spec, places.get(selected.id)),
        alt=shown,  # if this text changes, the browser redraws the whole chart
        file="runcast_cost_against_time",
        data=lambda: document.points(answer),
        caption=free,
    )
    figure.draw(drawn, on_select=on_pick, selection=charts.PICK)


def memory_and_step(scenario: Scenario, plan: Plan) -> tuple[Figure, Figure]:
    """Draw the memory of a GPU and the time of a step, by part."""
    memory, step = _parts(answers.key_of(scenario), plan.id, figure.theme(), plan)
    headroom, step_sentence = document.headroom_sentence(plan), document.step_sentence(plan)
    return (
        Figure(
            key="plan_memory", spec=memory, alt=f"Memory per GPU by part. {headroom}",
            file="runcast_memory", data=lambda: document.memory(plan), caption=headroom,
        ),
        Figure(
            key="plan_step", spec=step, alt=f"Time of one step by part. {step_sentence}",
            file="runcast_step", data=lambda: document.step(plan), caption=step_sentence,
        ),
    )  # fmt: skip
