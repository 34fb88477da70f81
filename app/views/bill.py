"""Everything on the bill of one plan: a section of the page about prices and risk."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app import bill_charts, link
from app import bill_tables as tables
from app.bill import Bill, bill_of, bill_sentences
from app.escape import as_text
from app.price_books import book_id
from app.tables import csv_bytes
from core.errors import RuncastError
from core.plan import Answer, Plan
from core.scenario import Scenario

KEPT = 128  # bills of a few kB
KEPT_S = 6 * 3600
HOW = "bill_how"

Query = tuple[tuple[str, str], ...]


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _bill(query: Query, plan_id: str, book: str, _scenario: Scenario, _plan: Plan) -> Bill:
    return bill_of(_scenario, _plan)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _chart(query: Query, plan_id: str, book: str, theme: str, _found: Bill) -> dict[str, Any]:
    """The chart as it is drawn: to build it takes longer than all the figures in it."""
    return bill_charts.bars(tables.bars(_found), theme=theme).to_dict()


def draw(scenario: Scenario, answer: Answer, plan: Plan) -> None:
    """The total in a sentence, a bar a line, and how each line is worked out."""
    key = (tuple(scenario.to_query().items()), plan.id, book_id(scenario))
    st.subheader("Everything on the bill", anchor=False)
    try:
        found = _bill(*key, scenario, plan)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    st.markdown("\n".join(f"- {as_text(s)}" for s in bill_sentences(scenario, found)))
    bars = tables.bars(found)
    if not bars.empty:
        theme = "dark" if st.context.theme.type == "dark" else "light"
        st.vega_lite_chart(
            spec=_chart(*key, theme, found),
            key="bill_bars",
            width="stretch",
            alt=tables.alt(found),
        )
    st.table(tables.shown(found).map(as_text), hide_index=True)
    with st.expander("How each line is worked out", key=HOW):
        st.markdown(
            "\n".join(f"- **{as_text(label)}**: {as_text(how)}" for label, how in tables.how(found))
        )
    address = link.address(scenario, st.context.url)
    st.download_button(
        "Download the bill",
        data=lambda: csv_bytes(tables.download(found), address),
        file_name="runcast_bill.csv",
        mime="text/csv",
        key="bill_csv",
        on_click="ignore",
    )
