"""The charts of the Plan page, built once per answer for all users."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app.document import format as fmt
from app.document.chart_files import Spec
from app.plan import chart_tables, charts, document, part_charts
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
) -> tuple[Spec, dict[str, chart_tables.Place], str]:
    """The chart, the positions of its plans, and what it says; empty without a price."""
    points = document.points(_answer)
    if points.empty:
        return {}, {}, ""
    with charts.checked(False):  # tests build these charts with every part validated
        spec = charts.pareto(
            points,
            budget_usd=_scenario.budget_usd,
            deadline_days=_scenario.deadline_days,
            budget_text=f"Budget {fmt.usd_short(_scenario.budget_usd)}",
            deadline_text=f"Deadline {fmt.days((_scenario.deadline_days or 0) * 24)}",
            theme=theme,
        )
    return spec, chart_tables.places(points), document.frontier_sentence(points)


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
        spec=chart_tables.here(spec, places.get(selected.id)),
        alt="Cost against wall clock of every plan, both on logarithmic axes.",
        said=shown,
        file="runcast_cost_against_time",
        data=lambda: document.points(answer),
        caption=free,
    )
    figure.draw(drawn, on_select=on_pick, selection=charts.PICK)


def memory_and_step(plan: Plan) -> tuple[Figure, Figure]:
    """Draw the memory of a GPU and the time of a step, by part."""
    headroom, step_sentence = document.headroom_sentence(plan), document.step_sentence(plan)
    with charts.checked(False):
        memory = part_charts.memory_bar(
            document.memory(plan),
            capacity_gib=document.capacity_gib(plan),
            capacity_text=f"Usable {fmt.gib(plan.memory_capacity_bytes)}",
            theme=figure.theme(),
        )
        step = part_charts.step_waterfall(document.step(plan), theme=figure.theme())
    return (
        Figure(
            key="plan_memory", spec=memory, alt="Memory per GPU by part.",
            file="runcast_memory", data=lambda: document.memory(plan), caption=headroom,
        ),
        Figure(
            key="plan_step", spec=step, alt="Time of one step by part.",
            file="runcast_step", data=lambda: document.step(plan), caption=step_sentence,
        ),
    )  # fmt: skip
