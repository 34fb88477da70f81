"""The first look on the Plan page: no widgets, because the whole answer draws them."""

from __future__ import annotations

import datetime as dt

import streamlit as st

from app import tables, words
from app.escape import as_text
from app.first_look import NOTE
from core.plan import Answer
from core.scenario import Scenario

LISTED = 8  # plans


def draw(scenario: Scenario, answer: Answer) -> None:
    """The answer of the usual accelerators: sentence, numbers on top, best plans."""
    today = dt.datetime.now(tz=dt.UTC).date()
    st.info(NOTE)
    st.markdown(f"**{as_text(words.answer_sentence(scenario, answer))}**")
    headlines = tables.headlines(scenario, answer, answer.plans[0], today)
    for column, line in zip(st.columns(len(headlines)), headlines, strict=True):
        with column, st.container(border=True, height="stretch", gap="xsmall"):
            st.metric(line.label, as_text(line.value), help=line.about)
            for text in line.lines:
                st.caption(as_text(text))
    st.markdown("\n".join(f"- {as_text(tables.label(p))}" for p in answer.plans[:LISTED]))
