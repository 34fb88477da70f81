"""The Price data page: who asks what for which GPU, since when, by whose word."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pandas as pd
import streamlit as st

from app import format as fmt
from app import link, price_books, prices_address, prices_charts
from app import prices_offers as offers
from app.accuracy_tables import csv_bytes
from app.escape import as_text
from app.views import prices_over_time, prices_sources
from core.errors import RuncastError
from core.plan import Answer
from core.scenario import Scenario
from pricing.offers import installed_id, newest_per_place, snapshot
from pricing.price_book_store import load_book

KEPT_S = 6 * 3600
TABLE_PX = 420
SINGLE = {"unit": "gpu_hour"}
AnswerOf = Callable[[Scenario], Answer]


@st.cache_data(max_entries=8, ttl=KEPT_S, show_spinner="Reading the prices")
def _frame(snapshot_id: str, book: str, book_id: str, today: dt.date) -> pd.DataFrame:
    """The newest offers of a snapshot, with a price book's prices where one is named."""
    if book_id:
        found = price_books.listed(snapshot_id, load_book(book), today).offers
    else:
        found = newest_per_place(snapshot(snapshot_id).offers)
    return offers.frame_of(found, today)


def draw(answer_of: AnswerOf) -> None:
    """The page: offers, who is cheapest where, history, sources, what is held back."""
    scenario, today = link.scenario(), price_books.today()
    try:
        frame = _frame(scenario.prices, scenario.price_book, price_books.book_id(scenario), today)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    theme = "dark" if st.context.theme.type == "dark" else "light"
    _draw_summary(frame, scenario, today)
    chosen = _draw_filters(frame)
    _draw_heatmap(chosen, theme)
    _draw_offers(chosen)
    prices_over_time.draw(scenario, answer_of, frame["accelerator"].unique(), theme, today)
    prices_sources.draw()


def _draw_summary(frame: pd.DataFrame, scenario: Scenario, today: dt.date) -> None:
    st.markdown(f"**{as_text(offers.summary(frame, scenario.prices))}**")
    if (newest := installed_id()) != scenario.prices:
        st.info(f"The prices are those of snapshot {scenario.prices}, as the link asks; the newest "
                f"here is {newest}.")  # fmt: skip
        st.button("Use the newest prices", key="prices_newest", on_click=_use_newest)
    text, colour = offers.newest(frame, today)
    with st.container(horizontal=True):
        st.badge(as_text(text), color=colour)
        if scenario.price_book:
            st.badge(as_text(f"with price book {scenario.price_book}"), color="blue")
    st.caption(
        "An observation, not a quote: fresh is a day old at most; over a day and over a week are "
        "what the words say. A month is 730 hours."
    )


def _use_newest() -> None:
    link.edit(link.changed(link.scenario(), prices=installed_id()))


def _draw_filters(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that the filters let through; the filters are in the address."""
    choices = offers.choices(frame)
    prices_address.take_over({**choices, "unit": list(offers.UNITS)}, SINGLE)
    for note in prices_address.notes():
        st.warning(as_text(note))
    wanted = {}
    for column, name in zip(st.columns(len(offers.FILTERS)), offers.FILTERS, strict=True):
        wanted[name] = column.multiselect(
            offers.FILTERS[name],
            choices[name],
            key=prices_address.key(name),
            on_change=prices_address.edited,
            placeholder="All",
        )
    st.segmented_control(
        "Price",
        list(offers.UNITS),
        key=prices_address.key("unit"),
        on_change=prices_address.edited,
        format_func=offers.UNITS.__getitem__,
        required=True,
    )
    prices_address.write([*offers.FILTERS, "unit"], SINGLE)
    return offers.narrowed(frame, wanted)


def _draw_heatmap(chosen: pd.DataFrame, theme: str) -> None:
    st.subheader("Cheapest GPU-hour by accelerator and cloud", anchor=False)
    cells = offers.heatmap(chosen)
    sentence = offers.heatmap_sentence(cells)
    if not cells.empty:
        # A container of a fixed height scrolls sideways, too, where the screen is small.
        with st.container(height=prices_charts.heatmap_px(cells), border=False):
            st.altair_chart(
                prices_charts.heatmap(cells, theme=theme),
                key="prices_heatmap",
                width="content",
                alt="Cheapest USD per GPU-hour, a row an accelerator, a column a cloud. "
                + sentence,
            )
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(
        as_text(
            f"{sentence} USD per GPU-hour of any purchase that the filters let through; a dash: "
            "not offered."
        )
    )
    download(right, lambda: offers.wide(cells), "runcast_cheapest.csv", "prices_heatmap_csv")


def _draw_offers(chosen: pd.DataFrame) -> None:
    st.subheader("Offers", anchor=False)
    unit = str(st.session_state[prices_address.key("unit")])
    shown = offers.table(chosen.head(offers.LISTED), unit)
    if shown.empty:
        st.info("No offer is all of this: take a filter away.")
        return
    st.dataframe(
        shown,
        key="prices_offers",
        hide_index=True,
        height=TABLE_PX,
        width="stretch",
        alt="Offers, the cheapest GPU-hour first, with source, age and quality",
        column_config={
            offers.UNITS[unit]: st.column_config.NumberColumn(format="%.4g"),
            "Accelerator": st.column_config.Column(pinned=True),
        },
    )
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(as_text(_listed_sentence(len(shown), len(chosen))))
    download(right, lambda: offers.table(chosen, unit), "runcast_offers.csv", "prices_offers_csv")


def _listed_sentence(listed: int, found: int) -> str:
    if listed == found:
        return f"{fmt.count(found)} offers, the cheapest GPU-hour first."
    return f"The cheapest {fmt.count(listed)} of {fmt.count(found)} offers; the CSV has all."


def download(
    place: st.delta_generator.DeltaGenerator,
    table: Callable[[], pd.DataFrame],
    name: str,
    key: str,
) -> None:
    """A table as a file; no cell of it starts a formula."""
    place.download_button(
        "Download CSV",
        data=lambda: csv_bytes(table()),
        file_name=name,
        mime="text/csv",
        key=key,
        on_click="ignore",
        width="stretch",
    )
