"""Where each number of the selected plan comes from: a section of the Plan page."""

from __future__ import annotations

import datetime as dt
from urllib.parse import urlencode

import streamlit as st

from app.document import page
from app.document.escape import as_text
from app.document.vocabulary import KINDS, Kind
from app.forecast.price_book import book_id, today
from app.provenance import document
from app.provenance.age import age_of, fit_sentence, price_age
from app.provenance.record import Record, walked
from app.provenance.records import provenance_of
from app.scenario.link import Query, address_of, query_of
from app.web import figure, link
from app.web.answers import KEPT_S
from app.web.fragment import alone
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer, Plan

KEPT = 128  # records of some 200 kB
OPEN = "plan_provenance"
NUMBER = "plan_provenance_number"
COLOURS: dict[Kind, str] = {
    "measured": "green",
    "fitted": "blue",
    "published": "violet",
    "assumed": "orange",
    "computed": "gray",
    "given": "primary",
}


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _records(
    query: Query, plan_id: str, book: str, _scenario: Scenario, _plan: Plan
) -> tuple[Record, ...]:
    return provenance_of(_scenario, _plan)


@alone
def draw(scenario: Scenario, answer: Answer, plan: Plan) -> None:
    """Draw a collapsed section, computed only when opened, for one number at a time."""
    part = st.expander("Where each number comes from", key=OPEN, on_change="rerun")
    if not part.open:
        return
    with part:
        _draw_body(scenario, plan)


def _draw_body(scenario: Scenario, plan: Plan) -> None:
    try:
        records = _records(query_of(scenario), plan.id, book_id(scenario), scenario, plan)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    day = today()
    every = {r.key: r for r in walked(records)}
    shown = {r.key for r in records}
    ordered = [*(k for k in every if k in shown), *(k for k in every if k not in shown)]
    chosen = st.selectbox(
        "Number",
        ordered,
        key=NUMBER,
        format_func=lambda key: (
            f"{'' if key in shown else 'Input: '}{every[key].label}: {every[key].text}"
        ),
        help="Those that the page shows come first, then what they rest on; type to search",
    )
    _draw_record(every.get(chosen) or records[0], day)
    if badge := price_age(plan, day):
        st.badge(as_text(badge[0]), color=badge[1])
    st.caption(as_text(f"Fractions of rates were fitted on {fit_sentence()}."))
    st.caption(as_text(document.counts_sentence(records)))
    _draw_downloads(records, day)


def _draw_record(record: Record, today: dt.date) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.markdown(f"**{as_text(record.label)}: {as_text(record.text)}**", width="content")
        st.badge(record.kind, color=COLOURS[record.kind], help=KINDS[record.kind])  # type: ignore[arg-type]
    if (method := record.computed_as) is not None:
        words = as_text(f"{method.topic}: {method.formula} ({method.module}; {method.source}).")
        address = f"method?{urlencode(link.scenario().to_query())}#formulas"
        st.markdown(f"{words} [All formulas are on the Method page]({address}).")
    if record.kind != "computed":
        says = record.source.printed if record.source else ""
        age = age_of(document.source_date(record), today)
        source = f"Source: {document.source_text(record)}, {age}."
        st.markdown(as_text(f"{source} It says: {says}." if says else source))
    if record.note:
        st.caption(as_text(f"{record.note[0].upper()}{record.note[1:]}."))
    if record.inputs:
        page.draw_table(document.inputs(record, today))


def _draw_downloads(records: tuple[Record, ...], today: dt.date) -> None:
    address = address_of(link.scenario(), st.context.url)
    files = figure.table_files(lambda: document.whole(records, today).frame(), address)
    with st.container(horizontal=True, gap="small"):
        for ending, (mime, made) in files.items():
            st.download_button(
                f"All numbers as {'CSV' if ending == 'csv' else 'Parquet'}",
                data=made,
                file_name=f"runcast_provenance.{ending}",
                mime=mime,
                key=f"plan_provenance_{ending}",
                on_click="ignore",
            )
