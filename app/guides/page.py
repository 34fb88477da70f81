"""The Guides checked page: what guides advise, row by row, and what we recommend instead."""

from __future__ import annotations

import streamlit as st

from app.document.escape import as_text
from app.document.glossary import explained
from app.guides import document
from app.guides.claim_text import sources_line
from app.guides.decision import VERDICTS, Decision
from app.guides.decisions import RULES, counts, decisions_of, verdict_sentence
from app.scenario.link import address_of
from app.web.answers import KEPT_S
from core.scenario import Scenario
from hardware.decision_tables import TABLES

PATH = "decisions"
MOST_TERMS = 600
TABLE, VERDICT = "decisions_table", "decisions_verdict"


@st.cache_resource(ttl=KEPT_S, show_spinner="Working the decision tables out")
def _found(table: str) -> tuple[Decision, ...]:
    """One table, worked out once for all users and never changed."""
    return decisions_of((table,))


def draw() -> None:
    """Draw the page: the rules, counts of verdicts, filters, then the tables one after another."""
    st.markdown(
        "Guides for practitioners print tables: this model on these GPUs, so that strategy. Here "
        "is every row of five of them, and of a list of what sharding saves: choose which to read. "
        "A box is one printed "
        "row: the case and the advice, then, for each concrete job, whether Runcast agrees, what "
        "it recommends, and why."
    )
    on_top = st.container()  # filled last: tables appear while others are worked out
    with st.expander("How a recommendation is made, and when it agrees"):
        st.markdown(as_text(RULES))
    shown = st.multiselect(
        "Tables",
        list(TABLES),
        default=next(iter(TABLES)),  # all tables are 250 texts: too slow on opening
        format_func=lambda letter: f"{letter}. {TABLES[letter]}",
        key=TABLE,
    )
    verdicts = st.multiselect("Verdicts", VERDICTS, default=list(VERDICTS), key=VERDICT)
    for letter in TABLES:
        if letter in shown:
            _draw_table(letter, _found(letter), tuple(verdicts))
    if not shown:
        st.info("No table is chosen: choose one above.")
    with on_top:
        _draw_counts([d for letter in TABLES for d in _found(letter)])


def _draw_counts(found: list[Decision]) -> None:
    for column, (verdict, n) in zip(st.columns(len(VERDICTS)), counts(found).items(), strict=True):
        column.metric(verdict.capitalize(), n, border=True)
    st.caption(as_text(verdict_sentence(found)))


def _draw_table(letter: str, rows: tuple[Decision, ...], verdicts: tuple[str, ...]) -> None:
    st.subheader(f"{letter}. {TABLES[letter]}", anchor=False)
    printed = ((d.advice.source, d.advice.source_date) for d in rows)
    st.caption(as_text(f"{verdict_sentence(rows)} {sources_line(printed)}"))
    kept = [d for d in rows if d.verdict in verdicts]
    if not kept:
        st.markdown("No row of this table has one of the chosen verdicts.")
        return
    for published, cases in document.cases(kept, _addresses(kept)).items():
        with st.container(border=True, gap="small"):
            st.markdown(published, help=explained(published, MOST_TERMS))
            for row in cases:
                job, recommends, why = st.columns([3, 3, 5], gap="medium")
                job.markdown(row.job)
                recommends.markdown(row.recommends)
                why.markdown(row.why)


def _addresses(found: list[Decision]) -> dict[str, str]:
    """The Plan page address for the case of each decision."""
    root = (st.context.url or "").partition("?")[0].rstrip("/").removesuffix(f"/{PATH}")
    return {
        d.advice.id: address_of(Scenario.from_query(dict(d.link))[0], root) for d in found if d.link
    }
