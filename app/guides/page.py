"""The page Published advice, checked: what guides advise, and what we recommend instead."""

from __future__ import annotations

from urllib.parse import parse_qsl

import streamlit as st

from app.document.escape import as_text
from app.document.glossary import explained
from app.guides import document
from app.guides.document import (
    RULES,
    computed_sentence,
    counts,
    rows_of,
    sources_line,
    verdict_sentence,
)
from app.scenario.link import address_of
from core.scenario import Scenario
from hardware.decision_tables import TABLES, VERDICTS, Advice

PATH = "decisions"
MOST_TERMS = 600
TABLE, VERDICT = "decisions_table", "decisions_verdict"


def draw() -> None:
    """Draw the page: the rules, counts of verdicts, filters, then the tables one after another."""
    st.markdown(
        "Guides for practitioners print tables: this model on these GPUs, so that strategy. Here "
        "is every row of five of them, and of a list of what sharding saves: choose which to read. "
        "A box is one printed "
        "row: the case and the advice, then, for each concrete job, whether Runcast agrees, what "
        "it recommends, and why."
    )
    rows = rows_of(TABLES)
    for column, (verdict, n) in zip(st.columns(len(VERDICTS)), counts(rows).items(), strict=True):
        column.metric(verdict.capitalize(), n, border=True)
    computed = computed_sentence((row.computed_with, row.computed) for row in rows)
    st.caption(as_text(f"{verdict_sentence(rows)} {computed}"))
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
            _draw_table(letter, tuple(verdicts))
    if not shown:
        st.info("No table is chosen: choose one above.")


def _draw_table(letter: str, verdicts: tuple[str, ...]) -> None:
    rows = rows_of((letter,))
    st.subheader(f"{letter}. {TABLES[letter]}", anchor=False)
    printed = ((row.source, row.source_date) for row in rows)
    st.caption(as_text(f"{verdict_sentence(rows)} {sources_line(printed)}"))
    kept = [row for row in rows if row.verdict in verdicts]
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


def _addresses(rows: list[Advice]) -> dict[str, str]:
    """The Plan page address for the case of each row."""
    root = (st.context.url or "").partition("?")[0].rstrip("/").removesuffix(f"/{PATH}")
    return {
        row.id: address_of(Scenario.from_query(dict(parse_qsl(row.link)))[0], root)
        for row in rows
        if row.link
    }
