"""Speed on the Memory & speed page: the ideal step, the actual one, and scaling with GPUs."""

from __future__ import annotations

import streamlit as st

from app.document.chart_files import Spec, spec_of
from app.document.escape import as_text
from app.explain import document as explain_document
from app.explain import explained, words
from app.forecast.by_count import plans_by_count
from app.forecast.vary import PlansByCount
from app.memory import speed_charts as charts
from app.memory import speed_tables
from app.memory.layouts_section import draw_table
from app.web import figure
from app.web.answers import KEPT_S, Key
from core.errors import RuncastError
from core.explain.bottleneck import Faster
from core.scenario import Scenario
from core.search.plan import Plan

KEPT = 128  # some 40 kB each


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _faster(key: Key, plan_id: str, _plan: Plan) -> Faster:
    return explained.faster_of(_plan)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner="Trying other numbers of GPUs")
def _searched(key: Key, plan_id: str, _plan: Plan) -> PlansByCount:
    return plans_by_count(_plan)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _waterfall(key: Key, plan_id: str, theme: str, _plan: Plan) -> Spec:
    return spec_of(charts.waterfall(speed_tables.waterfall_drawn(_plan), theme=theme))


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _panels(
    key: Key, plan_id: str, theme: str, _plan: Plan, _found: PlansByCount
) -> dict[str, Spec]:
    points = speed_tables.scaling_drawn(_found.plans)
    drawn = {"throughput": charts.throughput, "efficiency": charts.efficiency}
    return {
        name: spec_of(chart(points, chosen=_plan.num_gpus, theme=theme))
        for name, chart in drawn.items()
    }


def draw(scenario: Scenario, plan: Plan, key: Key) -> None:
    """Draw where the time of a step goes, what would shorten it, and scaling with GPUs."""
    about = as_text(speed_tables.WATERFALL_HELP)
    st.subheader("One step, from the ideal to the whole", anchor=False, help=about)
    sentence = speed_tables.waterfall_sentence(plan)
    figure.draw(
        figure.Figure(
            key="memory_step",
            spec=_waterfall(key, plan.id, figure.theme(), plan),
            alt=f"Seconds of one step from the ideal through each loss to the whole. {sentence}",
            file="runcast_step",
            data=lambda: speed_tables.waterfall(plan),
            caption=sentence,
        )
    )
    found = _faster(key, plan.id, plan)
    st.markdown(as_text(words.next_sentence(found)))
    draw_table(
        "memory_step_table", "The step as a table", lambda: speed_tables.waterfall_shown(plan)
    )
    draw_table(
        "memory_faster_table",
        "What would shorten each part",
        lambda: explain_document.bottlenecks(found).texts(),
    )
    _draw_scaling(scenario, plan, key)


def _draw_scaling(scenario: Scenario, plan: Plan, key: Key) -> None:
    st.subheader("More or fewer GPUs", anchor=False, help=as_text(speed_tables.SCALING_HELP))
    try:
        found = _searched(key, plan.id, plan)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    sentence = speed_tables.scaling_sentence(plan, found)
    titles = {"throughput": "Tokens/s", "efficiency": "Parallel efficiency"}
    if len(found.plans) < 2:  # one point is no curve
        titles = {}
    specs = _panels(key, plan.id, figure.theme(), plan, found)
    for column, (name, title) in zip(st.columns(2), titles.items(), strict=False):
        with column:
            figure.draw(
                figure.Figure(
                    key=f"memory_{name}",
                    spec=specs[name],
                    alt=f"{title} against the number of GPUs, with linear scaling. {sentence}",
                    file=f"runcast_{name}",
                    data=lambda: speed_tables.scaling(found.plans),
                )
            )
    st.caption(as_text(sentence))
    draw_table(
        "memory_scaling_table",
        "Numbers of GPUs as a table",
        lambda: speed_tables.scaling_shown(found.plans, chosen=plan.num_gpus),
    )
    st.caption(
        "Time, dollars and failures against the number of GPUs are on the page Risk & money."
    )
