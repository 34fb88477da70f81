"""Runs beside their forecasts on the Accuracy page: the chart, in words, and its data as CSV."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from app import accuracy_charts as charts
from app import accuracy_tables as tables
from app import accuracy_words as words
from app.escape import as_text
from app.validate import Report
from app.validate_section import Flags


def draw_ratios(
    report: Report, chosen: Flags, kind: str, theme: str, key: str, *, baseline: bool
) -> None:
    """The chart of some runs, in words, and their data as CSV. A baseline learns from the other
    runs of its file: beside a few it says nothing."""
    points = tables.points(report, chosen)
    if points.empty:
        st.info("No measured run is all of this.")
        return
    others = report.baseline.of(chosen) if baseline else None
    sentence = words.answer_sentence(report.throughput.of(chosen), others)
    st.altair_chart(
        charts.ratios(points, kind=kind, title=words.KINDS[kind], theme=theme),
        key=key,
        width="stretch",
        alt=f"Measured over predicted throughput against predicted, one mark a run. {sentence}",
    )
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(as_text(sentence))
    download(right, points, "runcast_accuracy.csv", f"{key}_csv")


def download(place: Any, frame: pd.DataFrame, name: str, key: str) -> None:
    """A table as a file."""
    place.download_button(
        "Download CSV",
        data=lambda: tables.csv_bytes(frame),
        file_name=name,
        mime="text/csv",
        key=key,
        on_click="ignore",
        width="stretch",
    )
