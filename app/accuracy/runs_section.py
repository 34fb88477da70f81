"""The part of the Accuracy page on single runs: the chart, its summary in words, and its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import streamlit as st

from app.accuracy import charts, document, words
from app.accuracy.section_scores import Flags
from app.accuracy.validate import Report
from app.document import chart_files
from app.document.csv import csv_bytes
from app.document.table import Table
from app.web import figure

SpecOf = Callable[[pd.DataFrame, str, str], chart_files.Spec]  # from points, kind, theme


def ratios(points: pd.DataFrame, kind: str, theme: str) -> chart_files.Spec:
    """The specification of the chart, ready to draw."""
    drawn = charts.ratios(points, kind=kind, title=words.KINDS[kind], theme=theme)
    return chart_files.spec_of(drawn)


def draw_ratios(
    report: Report, chosen: Flags, kind: str, key: str, spec_of: SpecOf, *, baseline: bool
) -> None:
    """Draw the chart of the chosen runs and its summary in words.

    The baseline learns from the other runs of its file, so it means nothing for a few runs.
    """
    points = document.points(report, chosen)
    if points.empty:
        st.info("No measured run is all of this: take a filter away.")
        return
    others = report.baseline.of(chosen) if baseline else None
    sentence = words.answer_sentence(report.throughput.of(chosen), others)
    figure.draw(
        figure.Figure(
            key=key,
            spec=spec_of(points, kind, figure.theme()),
            alt=f"Measured over predicted throughput against predicted, one mark a run. {sentence}",
            caption=sentence,
            file="runcast_accuracy",
            data=lambda: points,
        )
    )


def download(place: Any, table: Table[Any], name: str, key: str) -> None:
    """Offer a table as a file to download."""
    place.download_button(
        "Download CSV",
        data=lambda: csv_bytes(table.frame()),
        file_name=name,
        mime="text/csv",
        key=key,
        on_click="ignore",
        width="stretch",
    )
