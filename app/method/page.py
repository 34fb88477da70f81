"""The Method page: how a forecast is made, what it includes, and published figures checked."""

from __future__ import annotations

import datetime as dt

import streamlit as st

from app.accuracy.document import missing
from app.document import page
from app.document.blocks import Row
from app.document.escape import as_text
from app.document.glossary import explained
from app.document.table import Table
from app.guides.document import computed_sentence, sources_line
from app.method import tables
from hardware import claims as published
from hardware.claims import PublishedClaim

TERMS, MOST_TERMS = "FLOPs, Activations, Logits, Optimizer states, Step, P10, P90, MFU", 900
TOPIC = "method_topic_"  # key prefix of the numbered parts with the arithmetic


def draw() -> None:
    """Draw the page: method, formulas, accounting, scope, claims, age of the data."""
    st.subheader("How a forecast is made", anchor=False, help=explained(TERMS, MOST_TERMS))
    for number, step in enumerate(tables.STEPS, start=1):
        st.markdown(f"{number}. {as_text(step)}")
    st.caption("Time is of training steps in steady state; MFU counts causal attention once.")
    st.subheader("Formulas", anchor="formulas")
    page.draw_table(tables.formulas())
    st.subheader(
        "Bytes per parameter", anchor=False,
        help=explained("AdamW, FP32, Gradients, Optimizer states", MOST_TERMS),
    )  # fmt: skip
    st.markdown(
        "Guides print 16, 18 or 20 bytes per parameter for AdamW in mixed precision. All are "
        "right, each of another software; adapters and other optimizers keep less."
    )
    page.draw_table(tables.accountings())
    _draw_claims(published.claims())
    st.subheader("Our own forecast of those cases", anchor=False)
    st.markdown(
        "The arithmetic above takes the MFU of the guide as given. This is what we forecast for "
        "the fastest layout: offload and small batches cost time that a given MFU hides. Then what "
        "makes 70B fit, the cheapest first."
    )
    made = ((c.computed_with, c.computed) for c in published.guide_cases())
    st.caption(
        as_text(f"MFU is over the dense 16-bit peak, also in fp8. {computed_sentence(made)}")
    )
    page.draw_table(tables.guide_forecasts())
    st.subheader("What is not modelled", anchor=False)
    page.draw_table(missing())
    st.subheader("What is modelled, and by which field", anchor=False)
    st.markdown("Each of these changes the forecast; a test holds every row to it.")
    _draw_searched(tables.modelled(), "method_modelled")
    st.subheader("Age of the data", anchor=False)
    for line in tables.data_lines(dt.datetime.now(tz=dt.UTC).date()):
        st.markdown(f"- {as_text(line)}")


def _draw_claims(checked: tuple[PublishedClaim, ...]) -> None:
    st.subheader("Published figures, checked", anchor=False)
    computed = computed_sentence((c.computed_with, c.computed) for c in checked)
    st.markdown(as_text(f"{tables.verdict_sentence(checked)} {computed}"))
    page.draw_table(tables.refuted(checked))
    st.markdown("Every figure, to sort and to search; the arithmetic is below, by topic.")
    _draw_searched(tables.claims(checked), "method_claims")
    for n, (topic, found) in enumerate(tables.by_topic(checked).items()):
        part = st.expander(as_text(topic), key=f"{TOPIC}{n}", on_change="rerun")
        if part.open:
            with part:
                _draw_topic(found)


def _draw_topic(found: list[PublishedClaim]) -> None:
    """Draw each figure of a topic with its arithmetic, then the sources."""
    for c in found:
        st.markdown(f"**{as_text(c.statement)}: {as_text(c.printed)}** ({as_text(c.verdict)})")
        st.markdown(f"{as_text(c.formula)}  \n{as_text(c.arithmetic)}  \n{as_text(c.why)}")
    printed = ((c.source, c.source_date) for c in found)
    st.caption(as_text(sources_line(printed)))


def _draw_searched(table: Table[Row], key: str) -> None:
    """Draw a table that can be sorted and searched."""
    st.dataframe(table.texts(), key=key, hide_index=True, width="stretch", alt=table.caption,
                 column_config=page.head_help(table.head))  # fmt: skip
