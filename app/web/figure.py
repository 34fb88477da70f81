"""A chart on a page, with a text alternative, and its data and picture as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.document import chart_files
from app.document.chart_files import Spec
from app.document.csv import csv_bytes
from app.document.escape import as_text
from app.scenario.link import address_of
from app.web import link
from app.web.fragment import alone

# For each file ending: the media type, and the function that makes the file.
Files = dict[str, tuple[str, Callable[[], bytes | str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart as a dict, its title and caption, and the table behind it."""

    key: str  # of the widget; unique on a page
    spec: Spec
    # What the chart shows, in a sentence. With another one the browser draws the chart anew, so on
    # a page of many edits it stays the same, and the caption or `said` has the numbers.
    alt: str
    file: str  # base name of its files
    data: Callable[[], pd.DataFrame]  # the numbers, for download
    caption: str = ""
    said: str = ""  # what the chart shows now, for screen readers alone


def theme() -> str:
    """The theme of the page: light or dark."""
    return "dark" if st.context.theme.type == "dark" else "light"


def draw(
    figure: Figure, *, on_select: Callable[[], None] | None = None, selection: str | None = None
) -> None:
    """Draw the chart, its caption and its downloads."""
    draw_chart(figure, on_select=on_select, selection=selection)
    draw_words(figure)


def draw_chart(
    figure: Figure,
    *,
    on_select: Callable[[], None] | None = None,
    selection: str | None = None,
    width: Literal["stretch", "content"] = "stretch",
) -> None:
    """Draw the chart alone. Width "content": the chart's own width, in a box that scrolls."""
    st.vega_lite_chart(
        spec=chart_files.sent(figure.spec),
        key=figure.key,
        width=width,
        on_select=on_select or "ignore",
        selection_mode=selection,
        alt=figure.alt,
    )


def draw_words(figure: Figure) -> None:
    """Draw the caption of a chart, what it says to screen readers, and its downloads."""
    if figure.said:
        place = st.container(key=f"{figure.key}_for_screen_readers")
        place.markdown(as_text(figure.said))
    if figure.caption:
        st.caption(as_text(figure.caption))
    draw_files(figure)


@alone
def draw_files(figure: Figure) -> None:
    """Downloads: the data as CSV and Parquet, the chart as PNG and SVG, made on demand."""
    part = st.popover(
        "Chart as a file", key=f"{figure.key}_files", type="tertiary", on_change="rerun"
    )
    if not part.open:
        return
    look, address = theme(), address_of(link.scenario(), st.context.url)
    kinds: Files = {
        **table_files(figure.data, address),
    }
    if find_spec("vl_convert"):  # of the extra `report`
        kinds |= {
            "png": ("image/png", lambda: chart_files.png(figure.spec, theme=look)),
            "svg": ("image/svg+xml", lambda: chart_files.svg(figure.spec, theme=look)),
        }
    with part:
        for ending, (mime, made) in kinds.items():
            st.download_button(
                f"{'Data' if ending in ('csv', 'parquet') else 'Picture'} as {ending.upper()}",
                data=made,
                file_name=f"{figure.file}.{ending}",
                mime=mime,
                key=f"{figure.key}_{ending}",
                on_click="ignore",
                width="stretch",
            )


def draw_csv(
    place: DeltaGenerator,
    data: Callable[[], pd.DataFrame],
    *,
    file: str,
    key: str,
    address: str = "",
) -> None:
    """The download of a table as CSV, made on demand; a last column holds the address if given."""
    place.download_button(
        "Download CSV",
        data=lambda: csv_bytes(data(), address),
        file_name=f"{file}.csv",
        mime="text/csv",
        key=key,
        on_click="ignore",
        width="stretch",
    )


def table_files(data: Callable[[], pd.DataFrame], address: str) -> Files:
    """A table as CSV and as Parquet, with the link it belongs to, made on demand."""
    return {
        "csv": ("text/csv", lambda: csv_bytes(data(), address)),
        "parquet": (
            "application/vnd.apache.parquet",
            lambda: chart_files.parquet(data(), address),
        ),
    }


def draw_named(
    page: str,
    specs: Mapping[str, Spec],
    name: str,
    title: str,
    alt: str,
    caption: str,
    file: str,
    data: Callable[[], pd.DataFrame],
) -> None:
    """Draw one of the charts of a page, with its title, if it has anything to show."""
    if name not in specs:
        return
    if title:
        st.markdown(f"**{title}**")
    draw(
        Figure(
            key=f"{page}_{name}", spec=specs[name], alt=alt, caption=caption, file=file, data=data
        )
    )
