"""The Method page: how a forecast is made, what it includes, and published figures checked."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import streamlit as st

from app.document.escape import as_text
from app.document.glossary import explained
from app.document.page import head_help
from app.guides import claims as guides_claims
from app.guides.claim_text import sources_line
from app.method import tables
from app.web.answers import KEPT_S

TERMS, MOST_TERMS = "FLOPs, Activations, Logits, Optimizer states, Step, P10, P90, MFU", 900
TOPIC = "method_topic_"  # key prefix of the numbered parts with the arithmetic


@st.cache_data(ttl=KEPT_S, show_spinner="Working the figures out")
def _checked() -> tuple[guides_claims.Checked, ...]:
    return guides_claims.all_checked()


@st.cache_data(ttl=KEPT_S, show_spinner="Forecasting the cases of the guides")
def _forecasts() -> pd.DataFrame:
    return tables.forecasts_frame()


def draw() -> None:
    """Draw the page: method, formulas, accounting, scope, claims, age of the data."""
    st.subheader("How a forecast is made", anchor=False, help=explained(TERMS, MOST_TERMS))
    for number, step in enumerate(tables.STEPS, start=1):
        st.markdown(f"{number}. {as_text(step)}")
    st.caption("Time is of training steps in steady state; MFU counts causal attention once.")
    st.subheader("Formulas", anchor="formulas")
    _draw_text(tables.formulas_frame())
    st.subheader(
        "Bytes per parameter", anchor=False,
        help=explained("AdamW, FP32, Gradients, Optimizer states", MOST_TERMS),
    )  # fmt: skip
    st.markdown(
        "Guides print 16, 18 or 20 bytes per parameter for AdamW in mixed precision. All are "
        "right, each of another software; adapters and other optimizers keep less."
    )
    _draw_text(tables.accountings_frame())
    _draw_claims(_checked())
    st.subheader("Our own forecast of those cases", anchor=False)
    st.markdown(
        "The arithmetic above takes the MFU of the guide as given. This is what we forecast for "
        "the fastest layout: offload and small batches cost time that a given MFU hides. Then what "
        "makes 70B fit, the cheapest first."
    )
    st.caption("MFU is over the dense 16-bit peak, also in fp8.")
    _draw_text(_forecasts())
    st.subheader("What is not modelled", anchor=False)
    _draw_text(tables.not_modelled_frame())
    st.subheader("What is modelled, and by which field", anchor=False)
    st.markdown("Each of these changes the forecast; a test holds every row to it.")
    _draw_table(tables.modelled_frame(), "method_modelled", "What is modelled")
    st.subheader("Age of the data", anchor=False)
    for line in tables.data_lines(dt.datetime.now(tz=dt.UTC).date()):
        st.markdown(f"- {as_text(line)}")


def _draw_claims(checked: tuple[guides_claims.Checked, ...]) -> None:
    st.subheader("Published figures, checked", anchor=False)
    st.markdown(as_text(tables.verdict_sentence(checked)))
    _draw_text(tables.refuted_frame(checked))
    st.markdown("Every figure, to sort and to search; the arithmetic is below, by topic.")
    _draw_table(tables.claims_frame(checked), "method_claims", "Published figures, checked")
    for n, (topic, found) in enumerate(tables.by_topic(checked).items()):
        part = st.expander(as_text(topic), key=f"{TOPIC}{n}", on_change="rerun")
        if part.open:
            with part:
                _draw_topic(found)


def _draw_topic(found: list[guides_claims.Checked]) -> None:
    """Draw each figure of a topic with its arithmetic, then the sources."""
    for c in found:
        st.markdown(
            f"**{as_text(c.claim.statement)}: {as_text(c.printed_text)}** ({as_text(c.verdict)})"
        )
        st.markdown(
            f"{as_text(c.claim.formula)}  \n{as_text(c.ours.arithmetic)}  \n{as_text(c.claim.why)}"
        )
    printed = ((c.claim.source, c.claim.source_date) for c in found)
    st.caption(as_text(sources_line(printed)))


def _draw_table(frame: pd.DataFrame, key: str, alt: str) -> None:
    """Draw a table that can be sorted and searched."""
    st.dataframe(frame, key=key, hide_index=True, width="stretch", alt=alt,
                 column_config=head_help(frame.columns))  # fmt: skip


def _draw_text(frame: pd.DataFrame) -> None:
    """Draw a table of text, with wrapped sentences."""
    st.table(frame.map(lambda cell: as_text(str(cell))), hide_index=True)
