"""The Plan page: the answer first, then the choice, then the chosen plan in detail."""

from __future__ import annotations

import datetime as dt
from typing import Any

import streamlit as st

from app import charts, form, link, neighbours, neighbours_table, tables, words
from app import format as fmt
from app.escape import as_text
from app.layout_text import layout_text
from app.risk_columns import of_plans
from app.views import why
from core.errors import shown
from core.plan import Answer, Plan
from core.scenario import Scenario

TABLE = "plan_table"
LIST = "plan_list"
CHART = "plan_chart"
MEASURED = "plan_measured"
FACTS_A_ROW = 3


def draw(scenario: Scenario, answer: Answer, options: form.Options) -> None:
    """The page for a scenario and its answer."""
    today = dt.datetime.now(tz=dt.UTC).date()
    theme = "dark" if st.context.theme.type == "dark" else "light"
    if not answer.plans:
        _draw_nothing(scenario, answer)
        return
    selected = chosen(scenario, answer)
    st.markdown(f"**{as_text(words.answer_sentence(scenario, answer))}**")
    _draw_headlines(scenario, answer, selected, today)
    _draw_chart(scenario, answer, selected, theme)
    st.caption(as_text(words.coverage_line(answer)))
    _draw_ranked(scenario, answer, selected, options)
    _draw_selected(scenario, answer, selected, today, theme)
    _draw_link(scenario)
    _draw_excluded(answer)


def is_listed(scenario: Scenario, answer: Answer) -> bool:
    """Whether the answer describes the plan that the scenario selects, if it selects one."""
    return not scenario.plan or any(p.id == scenario.plan for p in answer.plans)


def is_point(scenario: Scenario, answer: Answer) -> bool:
    """Whether the selected plan is at least ranked, if not described."""
    return scenario.plan in set(answer.points.get("id", ()))


def unknown_plan_sentence(scenario: Scenario) -> str:
    """Says that a link's plan is gone."""
    return f"The plan {shown(scenario.plan)} of the link is not among the ranked plans."


def chosen(scenario: Scenario, answer: Answer) -> Plan:
    """The plan that the link names, or the recommended one."""
    return answer.chosen(scenario.plan) or answer.plans[0]


def _row_chosen(ids: tuple[str, ...], key: str) -> None:
    rows = st.session_state[key]["selection"]["rows"]
    if rows and rows[0] < len(ids):
        link.choose(ids[rows[0]])


def _listed_chosen() -> None:
    link.choose(st.session_state[LIST])
    link.redraw()


def _point_chosen() -> None:
    picked = st.session_state[CHART]["selection"].get(charts.PICK) or []
    if picked and "id" in picked[0]:
        link.choose(str(picked[0]["id"]))
        link.redraw()


def _draw_nothing(scenario: Scenario, answer: Answer) -> None:
    st.error(as_text(words.answer_sentence(scenario, answer)))
    st.caption(as_text(words.coverage_line(answer)))
    _draw_excluded(answer, open_=True)
    _draw_link(scenario)


def _draw_headlines(scenario: Scenario, answer: Answer, selected: Plan, today: dt.date) -> None:
    headlines = tables.headlines(scenario, answer, selected, today)
    for column, line in zip(st.columns(len(headlines)), headlines, strict=True):
        with column, st.container(border=True, height="stretch", gap="xsmall"):
            st.metric(line.label, as_text(line.value), help=line.about)
            for text in line.lines:
                st.caption(as_text(text))


def _draw_chart(scenario: Scenario, answer: Answer, selected: Plan, theme: str) -> None:
    points = tables.points(answer)
    free = tables.free_sentence(answer)
    if points.empty:
        st.info(free or "No plan here has a price, so there is no chart of cost against time.")
        return
    chart = charts.pareto(
        points,
        selected_id=selected.id,
        budget_usd=scenario.budget_usd,
        deadline_days=scenario.deadline_days,
        budget_text=f"Budget {fmt.usd_short(scenario.budget_usd)}",
        deadline_text=f"Deadline {fmt.count(scenario.deadline_days)} days",
        theme=theme,
    )
    st.altair_chart(
        chart,
        key=CHART,
        width="stretch",
        on_select=_point_chosen,
        selection_mode=charts.PICK,
        alt=(
            "Cost against wall clock of every priced plan. "
            + words.answer_sentence(scenario, answer)
        ),
    )
    if free:
        st.caption(free)


def _draw_ranked(scenario: Scenario, answer: Answer, selected: Plan, options: form.Options) -> None:
    st.subheader("Ranked plans")
    ids = tuple(p.id for p in answer.plans)
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        form.draw_field("rank_by", options, horizontal=True)
    has_limits = scenario.deadline_days is not None or scenario.budget_usd is not None
    frame = tables.ranked(answer.plans, of_plans(scenario, answer.plans), has_limits=has_limits)
    address = link.address(scenario, st.context.url)
    right.download_button(
        "Download CSV",
        data=lambda: tables.csv_bytes(frame, address),
        file_name="runcast_plans.csv",
        mime="text/csv",
        key="plan_csv",
        on_click="ignore",
        width="stretch",
    )
    key = f"{TABLE}_{link.generation()}"
    st.dataframe(
        tables.styled(frame),
        key=key,
        hide_index=True,
        height=388,
        column_config=_columns(),
        on_select=lambda: _row_chosen(ids, key),
        selection_mode="single-row-required",
        selection_default={
            "selection": {"rows": [ids.index(selected.id)], "columns": [], "cells": []}
        },
        alt="Ranked plans",
    )


def _columns() -> dict[str, Any]:
    """Widths and hints of the ranked table."""
    config = st.column_config
    return {
        "#": config.NumberColumn(width=45, pinned=True, help="Rank"),
        tables.COST: config.NumberColumn(help="Median cost of the whole run"),
        tables.TIME: config.NumberColumn(help="Median wall clock, without failures"),
        tables.FAILING_TIME: config.NumberColumn(
            help="Expected, if machines fail as often as published or as given"
        ),
        "GPUs": config.NumberColumn(width=65),
        "Cloud": config.TextColumn(width=95),
        "Instance": config.TextColumn(width=150),
        "Purchase": config.TextColumn(width=95),
        tables.MFU: config.NumberColumn(help="Model FLOPs over the dense 16-bit peak"),
    }


def _draw_selected(
    scenario: Scenario, answer: Answer, plan: Plan, today: dt.date, theme: str
) -> None:
    st.subheader("Selected plan")
    labels = {p.id: tables.label(p) for p in answer.plans}
    st.session_state[LIST] = plan.id  # the scenario is the truth; the list only shows it
    st.selectbox(
        "Plan",
        list(labels),
        key=LIST,
        format_func=lambda plan_id: labels.get(plan_id, plan_id),
        on_change=_listed_chosen,
        help="The same choice as a row of the table or a point of the chart",
    )
    with st.container(horizontal=True, gap="small"):
        for badge in words.badges(plan, today):
            st.badge(as_text(badge), color="orange")
    _draw_facts(tables.facts(scenario, plan, today))

    left, right = st.columns([5, 6], gap="medium")
    with left:
        st.markdown("**Memory per GPU**")
        st.altair_chart(
            charts.memory_bar(
                tables.memory(plan),
                capacity_gib=tables.capacity_gib(plan),
                capacity_text=f"Usable {fmt.gib(plan.memory_capacity_bytes)}",
                theme=theme,
            ),
            key="plan_memory",
            width="stretch",
            alt=f"Memory per GPU by part. {tables.headroom_sentence(plan)}",
        )
        st.caption(as_text(tables.headroom_sentence(plan)))
    with right:
        st.markdown("**Time of one step**")
        st.altair_chart(
            charts.step_waterfall(tables.step(plan), theme=theme),
            key="plan_step",
            width="stretch",
            alt=f"Time of one step by part. {tables.step_sentence(plan)}",
        )
        st.caption(as_text(tables.step_sentence(plan)))

    why.draw(scenario, answer, plan, theme)
    _draw_neighbours(scenario, plan)
    _draw_measured(scenario, plan)
    st.markdown("**What is assumed**")
    for sentence in plan.assumptions:
        st.markdown(f"- {as_text(sentence)}")


def _draw_neighbours(scenario: Scenario, plan: Plan) -> None:
    found = neighbours.nearest(scenario, plan)
    if not found:
        return
    st.markdown("**Nearest measured runs**")
    st.table(neighbours_table.table(found).set_index("Published run"))
    st.caption(as_text(neighbours_table.sentence(found)))
    with st.popover("Where they were published", key="plan_neighbour_sources"):
        for n in found:
            st.markdown(f"- {as_text(f'{n.run_id}: {n.source} ({n.source_date})')}")


def _measured(gpu: str, num_gpus: int, layout: str) -> None:
    given = str(st.session_state[MEASURED])
    form.take_measurement(given, gpu=gpu, num_gpus=num_gpus, layout=layout)


def _draw_measured(scenario: Scenario, plan: Plan) -> None:
    """Where somebody who ran this plan says how fast it was."""
    here = (plan.offer.accelerator, plan.num_gpus, layout_text(plan.layout))
    of_this = here == (scenario.anchor_gpu, scenario.anchor_num_gpus, scenario.anchor_layout)
    if "measurement" not in form.errors():  # else the wrong text stays to be corrected
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
    if "measurement" in form.errors():
        st.error(as_text(form.errors()["measurement"]))


def _draw_facts(facts: list[tuple[str, str]]) -> None:
    for start in range(0, len(facts), FACTS_A_ROW):
        columns = st.columns(FACTS_A_ROW)
        for column, (name, text) in zip(columns, facts[start:], strict=False):
            with column, st.container(gap=None):
                st.caption(as_text(name))
                st.markdown(as_text(text))


def _draw_link(scenario: Scenario) -> None:
    st.subheader("Link to this answer")
    st.code(link.address(scenario, st.context.url), language=None, wrap_lines=True)


def _draw_excluded(answer: Answer, *, open_: bool = False) -> None:
    if answer.excluded:
        with st.expander("What was left out, and why", expanded=open_):
            st.dataframe(
                tables.excluded(answer),
                key="plan_excluded",
                hide_index=True,
                column_config={"Left out": st.column_config.TextColumn(width=90)},
                alt="What was left out",
            )
