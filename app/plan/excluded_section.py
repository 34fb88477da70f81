"""What a search excluded, and why: collapsed, unless it is the whole answer."""

from __future__ import annotations

import streamlit as st

from app.document.escape import as_text
from app.plan import document as plan_document
from app.plan import words as plan_words
from core.search.plan import Answer


def draw(answer: Answer, key: str, *, is_open: bool = False) -> None:
    """Draw the section if anything was excluded. Its table is made only while it is open."""
    if not answer.excluded:
        return
    part = st.expander("What was left out, and why", expanded=is_open, key=key, on_change="rerun")
    if not part.open:
        return
    with part:
        st.caption(as_text(plan_words.search_line(answer)))
        st.dataframe(
            plan_document.excluded(answer).texts(),
            key=f"{key}_table",
            hide_index=True,
            column_config={"Left out": st.column_config.TextColumn(width=90)},
            alt="What was left out",
        )
