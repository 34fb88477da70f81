"""The heatmap of the Options page: the best plan of each GPU at each cloud."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.document.chart_files import Spec
from app.document.escape import as_text
from app.options import charts
from app.options import filters as options_filters
from app.options import heatmap as heat
from app.options.document import Filters
from app.scenario.link import Query
from app.web import figure
from app.web.answers import KEPT_S
from app.web.figure import Figure
from core.scenario import Scenario
from core.search.plan import Answer

KEPT_CHARTS = 64


@st.cache_data(max_entries=KEPT_CHARTS, ttl=KEPT_S, show_spinner=False)
def _heatmap(
    query: Query,
    book_id: str,
    filters: Filters,
    measure: str,
    theme: str,
    _answer: Answer,
    _every: pd.DataFrame,
    _kept: pd.DataFrame,
) -> tuple[heat.Drawn, Spec] | None:
    """The cells to draw, and the chart as a dict."""
    drawn = heat.drawn_of(_answer, _every, _kept, measure)
    if drawn is None:
        return None
    return drawn, charts.heatmap(drawn.cells, title=heat.MEASURES[measure][2], theme=theme)


def draw(
    query: Query,
    book_id: str,
    scenario: Scenario,
    answer: Answer,
    filters: Filters,
    every: pd.DataFrame,
    kept: pd.DataFrame,
) -> None:
    """The best plan of each pair among `kept`, by a figure the reader picks, and its files."""
    st.subheader("GPU by cloud", anchor=False)
    measure = scenario.list_measure
    options_filters.follow(scenario, "list_measure")
    st.radio(
        "Best plan of each pair, by",
        list(heat.MEASURES),
        key=options_filters.key("list_measure"),
        on_change=options_filters.edited,
        args=("list_measure",),
        format_func=lambda name: heat.MEASURES[name][0],
        horizontal=True,
    )
    drawn = _heatmap(query, book_id, filters, measure, figure.theme(), answer, every, kept)
    if drawn is None:
        st.info("No plan that the filters let through has such a figure.")
        return
    shown, spec = drawn
    chart = Figure(
        key="options_heatmap",
        spec=spec,
        alt=f"A row a GPU, a column a cloud, the number in the cell. {shown.sentence}",
        file="runcast_gpu_by_cloud",
        data=lambda: heat.table(answer, every, kept, measure),
    )
    # A container of fixed height also scrolls sideways on a small screen.
    with st.container(height=charts.heatmap_px(shown.cells), border=False):
        st.vega_lite_chart(spec=chart.spec, key=chart.key, width="content", alt=chart.alt)
    st.caption(as_text(f"{shown.sentence} {heat.marks_sentence(answer, shown.cells)}"))
    figure.draw_files(chart)
