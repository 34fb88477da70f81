"""Everything on the bill of one plan: a section of the page about prices and risk."""

from __future__ import annotations

import streamlit as st

from app.bill import charts, document
from app.bill.bill import Bill, bill_of, bill_sentences
from app.document import chart_files, page
from app.document.escape import as_text
from app.forecast.price_book import book_id
from app.scenario.link import Query, query_of
from app.web import figure
from app.web.answers import KEPT_S
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer, Plan

KEPT = 128  # cached bills, a few kB each
HOW = "bill_how"


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _bill(query: Query, plan_id: str, book: str, _scenario: Scenario, _plan: Plan) -> Bill:
    return bill_of(_scenario, _plan)


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _chart(query: Query, plan_id: str, book: str, theme: str, _found: Bill) -> chart_files.Spec:
    """The chart as a spec, cached: building it takes longer than computing its figures."""
    return chart_files.spec_of(charts.bars(document.bars(_found), theme=theme))


def draw(scenario: Scenario, answer: Answer, plan: Plan) -> None:
    """Draw the total in a sentence, one bar per line, and how each line is computed."""
    key = (query_of(scenario), plan.id, book_id(scenario))
    st.subheader("Everything on the bill", anchor=False)
    try:
        found = _bill(*key, scenario, plan)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    page.draw_list(bill_sentences(scenario, found))
    if not document.bars(found).empty:
        figure.draw(
            figure.Figure(
                key="bill_bars",
                spec=_chart(*key, figure.theme(), found),
                alt=document.alt(found),
                caption="Bar: mean. Line with ends: P10 to P90.",
                file="runcast_bill",
                data=lambda: document.download(found),
            )
        )
    page.draw_table(document.lines(found).only(*document.READ))
    part = st.expander("How each line is worked out", key=HOW, on_change="rerun")
    if part.open:
        with part:
            page.draw_list(document.how(found).items)
