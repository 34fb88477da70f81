"""When and how big: a section of the page about prices and risk."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import format as fmt
from app import link, scale_charts
from app import scale_tables as tables
from app.escape import as_text
from app.price_books import book_id
from app.scale import Scale, scale_of
from app.scale_words import optimal_sentences, scale_sentences, waiting_sentences
from app.tables import csv_bytes
from core.errors import RuncastError
from core.plan import Answer, Plan
from core.scenario import Scenario

KEPT = 64  # some 50 kB each
KEPT_S = 6 * 3600
WORTH = "scale_usd_per_day"

Query = tuple[tuple[str, str], ...]


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner="Trying other numbers of GPUs")
def _scale(query: Query, plan_id: str, book: str, _scenario: Scenario, _plan: Plan) -> Scale:
    return scale_of(_scenario, _plan)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _charts(
    query: Query, plan_id: str, book: str, theme: str, _scenario: Scenario, _found: Scale
) -> dict[str, dict[str, Any]]:
    """The charts as they are drawn: to build them takes longer than all the figures in them."""
    points, priced = tables.points(_found), _found.cheapest is not None
    if points.dropna(subset=["days_p90_all"]).empty:  # at these failure rates no count ends
        return {}
    days, usd = _scenario.deadline_days, _scenario.budget_usd
    drawn = {
        "days": scale_charts.against_count(
            points,
            what="days",
            title="Days",
            chosen=_found.plan.num_gpus,
            limit=days,
            limit_text=f"Deadline {fmt.days(days * 24)}" if days else "",
            theme=theme,
        ).to_dict()
    }
    if priced:
        drawn["usd"] = scale_charts.against_count(
            points,
            what="usd",
            title="Dollars",
            chosen=_found.plan.num_gpus,
            limit=usd,
            limit_text=f"Budget {fmt.usd_short(usd)}" if usd else "",
            theme=theme,
        ).to_dict()
    if _found.optimal is not None:
        drawn["optimal"] = scale_charts.optimal(
            tables.optimal_drawn(_found), tables.own_run(_found), theme=theme
        ).to_dict()
    return drawn


def draw(scenario: Scenario, answer: Answer, plan: Plan) -> None:
    """Time and cost against the number of GPUs, whether to wait, and what to train."""
    key = (tuple(scenario.to_query().items()), plan.id, book_id(scenario))
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
        help="Days and dollars are then added up, and the least of both is said.",
    )
    _list(scale_sentences(scenario, found, worth or None))
    theme = "dark" if st.context.theme.type == "dark" else "light"
    drawn = _charts(*key, theme, scenario, found)
    shown = [name for name in ("days", "usd") if name in drawn]
    if shown:
        for column, name in zip(st.columns(len(shown)), shown, strict=True):
            column.vega_lite_chart(
                spec=drawn[name], key=f"scale_{name}", width="stretch", alt=tables.alt(found, name)
            )
    st.dataframe(tables.shown(found), hide_index=True, width="stretch", key="scale_table")
    address = link.address(scenario, st.context.url)
    st.download_button(
        "Download the numbers of GPUs",
        data=lambda: csv_bytes(tables.points(found), address),
        file_name="runcast_scale.csv",
        mime="text/csv",
        key="scale_csv",
        on_click="ignore",
    )
    st.markdown("**Waiting for a lower price**")
    _list(waiting_sentences(found, worth or None))
    st.markdown("**The best model for the money**")
    _list(optimal_sentences(found))
    if "optimal" in drawn:
        _draw_optimal(found, drawn["optimal"], address)


def _list(sentences: tuple[str, ...]) -> None:
    st.markdown("\n".join(f"- {as_text(s)}" for s in sentences))


def _draw_optimal(found: Scale, spec: dict[str, Any], address: str) -> None:
    st.vega_lite_chart(
        spec=spec, key="scale_optimal", width="stretch", alt=tables.optimal_alt(found)
    )
    st.dataframe(
        tables.optimal_shown(found), hide_index=True, width="stretch", key="scale_optimal_table"
    )
    st.download_button(
        "Download the compute-optimal curve",
        data=lambda: csv_bytes(tables.optimal(found), address),
        file_name="runcast_compute_optimal.csv",
        mime="text/csv",
        key="scale_optimal_csv",
        on_click="ignore",
    )
