"""When and how big: a section of the page about prices and risk."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app.document import chart_files, page
from app.document.escape import as_text
from app.forecast.price_book import book_id
from app.scale import charts, document
from app.scale.points import Scale, scale_of
from app.scale.words import optimal_sentences, scale_sentences, waiting_sentences
from app.scenario.link import Query, query_of
from app.web import figure
from app.web.answers import KEPT_S
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer, Plan

KEPT = 64  # cached answers, about 50 kB each
WORTH = "scale_usd_per_day"
FILES = {"days": "runcast_scale", "usd": "runcast_scale_cost"}
CAPTIONS = {"days": "A ring: the selected plan.", "usd": ""}
_draw_chart = partial(figure.draw_named, "scale")


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner="Trying other numbers of GPUs")
def _scale(query: Query, plan_id: str, book: str, _scenario: Scenario, _plan: Plan) -> Scale:
    return scale_of(_scenario, _plan)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _charts(
    query: Query, plan_id: str, book: str, theme: str, _scenario: Scenario, _found: Scale
) -> dict[str, chart_files.Spec]:
    """The charts as specs, cached: building them takes longer than computing their figures."""
    points = document.counts(_found).frame()
    finishing = points.dropna(subset=["expected_days_p90"])
    if finishing.empty:  # no number of GPUs finishes
        return {}
    against = partial(charts.against_count, points, chosen=_found.plan.num_gpus, theme=theme)
    drawn = {}
    if len(finishing) > 1:
        drawn["days"] = against(what="days", limit=_scenario.deadline_days)
        if _found.cheapest is not None:
            drawn["usd"] = against(what="usd", limit=_scenario.budget_usd)
    if _found.optimal is not None:
        drawn["optimal"] = charts.optimal(
            document.optimal_drawn(_found), document.own_run(_found), theme=theme
        )
    return {name: chart_files.spec_of(chart) for name, chart in drawn.items()}


def draw(scenario: Scenario, answer: Answer, plan: Plan) -> None:
    """Draw time and cost against the number of GPUs, whether to wait, and which model to train."""
    key = (query_of(scenario), plan.id, book_id(scenario))
    st.subheader("When and how big", anchor=False)
    try:
        found = _scale(*key, scenario, plan)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    worth = st.number_input(
        "What a day less is worth (USD)",
        min_value=0.0,
        value=None,
        step=1000.0,
        format="%.0f",
        key=WORTH,
        placeholder="not given",
        help="Days and dollars are then added up, and the least of both is shown.",
    )
    page.draw_list(scale_sentences(scenario, found, worth or None))
    drawn = _charts(*key, figure.theme(), scenario, found)
    shown = [name for name in FILES if name in drawn]
    for column, name in zip(st.columns(len(shown) or 1), shown, strict=False):
        with column:
            _draw_chart(
                drawn, name, "", document.alt(found, name), CAPTIONS[name], FILES[name],
                lambda: document.counts(found).frame(),
            )  # fmt: skip
    rows = "row" if len(found.points) == 1 else "rows"
    title = f"Every number of GPUs in figures: {len(found.points)} {rows}"
    part = st.expander(title, key="scale_part", on_change="rerun")
    if part.open:
        with part:
            counts = document.counts(found).only(*document.READ)
            page.draw_rows(counts, "scale_table", counts.caption)
    page.draw_list(waiting_sentences(found, worth or None), "Waiting for a lower price")
    st.markdown("**The best model for the money**")
    page.draw_list(optimal_sentences(found))
    if "optimal" in drawn:
        _draw_optimal(found, drawn)


def _draw_optimal(found: Scale, drawn: dict[str, chart_files.Spec]) -> None:
    _draw_chart(
        drawn, "optimal", "", document.optimal_alt(found), "", "runcast_compute_optimal",
        lambda: document.optimal(found).frame(),
    )  # fmt: skip
    part = st.expander("The curves in figures", key="scale_optimal_part", on_change="rerun")
    if part.open:
        with part:
            curves = document.optimal_read(found)
            page.draw_rows(curves, "scale_optimal_table", curves.caption)
