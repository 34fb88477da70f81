"""Why a plan is the best: the next bottleneck, and all comparisons on request."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app.document import chart_files, page
from app.document import format as fmt
from app.document.escape import as_text
from app.explain import charts as explain_charts
from app.explain import document, explained, sensitivity, words
from app.explain.explained import Against, Named, Why
from app.explain.sensitivity import Sensitivity
from app.scenario.layout import MAX_CHARS
from app.scenario.link import Query
from app.web import answers, figure
from app.web.answers import KEPT_S
from app.web.fragment import alone
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer, Plan

KEPT = 128  # cached explanations, a few kB each
OPEN = "plan_why"
MINE = "plan_my_layout"


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _why(query: Query, plan_id: str, other_id: str, _plan: Plan, _other: Plan | None) -> Why:
    return explained.why(_plan, _other)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _next(query: Query, plan_id: str, _plan: Plan) -> str:
    return words.next_sentence(explained.faster_of(_plan))


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _sensitivity(query: Query, plan_id: str, _plan: Plan) -> Sensitivity:
    return sensitivity.sensitivity_of(_plan)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _tornado(
    query: Query, plan_id: str, theme: str, _rows: pd.DataFrame, _what: str
) -> chart_files.Spec:
    """The chart as a spec, cached: building it takes longer than computing its figures."""
    moved = f"Change of the {_what} of the run"
    return chart_files.spec_of(explain_charts.tornado(_rows, moved=moved, theme=theme))


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _named(query: Query, plan_id: str, text: str, _plan: Plan) -> tuple[Named, Against | None]:
    """The result for a named layout and, if it is legal, its differences from the plan's layout."""
    found = explained.named(_plan.job, text, like=_plan.layout)
    if found.figures is None:
        return found, None
    return found, explained.against_layout(_plan.job, _plan.layout, found.layout, found.figures)


def draw(scenario: Scenario, answer: Answer, plan: Plan) -> None:
    """Draw the next bottleneck in a sentence; the rest is in a section that the user can open."""
    query, _ = answers.key_of(scenario)
    in_any_order = tuple(item for item in query if item[0] != "rank_by")
    why = _next(in_any_order, plan.id, plan)
    st.markdown(f"**Why this plan**\n\n{as_text(why)}")
    _draw_rest(query, answer, plan)


@alone
def _draw_rest(query: Query, answer: Answer, plan: Plan) -> None:
    part = st.expander(
        "Runner-up, bottlenecks, what moves the answer, and why not your layout",
        key=OPEN,
        on_change="rerun",
    )
    if not part.open:
        return
    runner_up = explained.other_of(answer, plan)
    found = _why(query, plan.id, runner_up.id if runner_up else "", plan, runner_up)
    with part:
        if (other := found.runner_up) is not None:
            st.markdown(f"**Against the {'other' if plan.rank > 1 else 'next'} plan**")
            page.draw_blocks(document.against(other, other.label))
        if (near := found.next_layout) is not None:
            st.markdown("**Against the next best layout on the same machines**")
            fit = f"{fmt.count(found.next_changes.num_fit)} other layouts that fit"
            name = f"{near.label}, the best of the {fit} and differ in one or two knobs,"
            page.draw_blocks(document.against(near, name))
        st.markdown("**What would make it faster**")
        page.draw_table(document.bottlenecks(found.faster))
        st.caption("Each line is the step computed again with that resource changed.")
        _draw_sensitivity(query, plan, _sensitivity(query, plan.id, plan))
        draw_mine(query, plan)


def _draw_sensitivity(query: Query, plan: Plan, found: Sensitivity) -> None:
    st.markdown("**What moves the answer**")
    rows = document.tornado(found)
    if rows.empty:
        st.caption("Nothing moves it.")
        return
    priced = any(np.isfinite(e.usd_low) for e in found.effects)
    what = "cost" if priced else "time"
    top, change = rows.iloc[int(rows["moved"].abs().argmax())], fmt.percent(found.change)
    figure.draw(
        figure.Figure(
            key="plan_tornado",
            spec=_tornado(query, plan.id, figure.theme(), rows, what),
            alt=f"What each input, {change} lower and higher, does to the {what} of the run with "
            f"the layout as it is. The most: {top['text']}.",
            caption=f"Each input {change} lower and higher, one at a time, with "
            f"the layout as it is. {words.unknowns_sentence(found.unknowns)}",
            file="runcast_sensitivity",
            data=lambda: document.effects(found).only(*document.FILE).frame(),
        )
    )


def draw_mine(query: Query, plan: Plan, *, key: str = MINE) -> None:
    """Draw the box for naming a layout, and the result. `key` of the box: one per page."""
    st.markdown("**Why not my layout?**")
    text = st.text_input(
        "A layout on these machines",
        key=key,
        max_chars=MAX_CHARS,
        placeholder="tp8 pp4 zero1",
        help="What is left out is searched. Keys: tp, pp, cp, ep, virtual_stages, dp_shard, "
        "micro_batch_size, sharding, recompute, ...",
    )
    if text.strip():
        draw_named(query, plan, text)


def draw_named(query: Query, plan: Plan, text: str) -> None:
    """Draw the verdict on one layout: the rules it breaks or the memory it lacks, its time and
    cost, and the changes that help, the cheapest first."""
    try:
        named, against = _named(query, plan.id, text, plan)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    page.draw_blocks(document.verdict(named))
    if against is not None:
        it = "It" if named.shortage is None else "With the memory, it"
        page.draw_blocks(document.against(against, it))
    page.draw_blocks(document.helps(named))
