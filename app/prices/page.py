"""The Prices page: what each cloud charges for which GPU, since when, from which source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from app.document import chart_files
from app.document import format as fmt
from app.document.escape import as_text
from app.document.glossary import explained
from app.document.page import head_help
from app.forecast import price_book
from app.prices import charts, filters, freshness, offers, over_time_section, sources_section
from app.web import figure, link
from app.web.answers import KEPT_S
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer
from pricing.book.files import has_book, load_book
from pricing.offers import newest_per_place, snapshot

TABLE_PX = 420
SINGLE = {"unit": "gpu_hour"}
# Glossary terms that explain the choices of a filter.
ABOUT = {"gpu": "GPU", "purchase": "On demand, Spot, Reserved, Capacity block"}
AnswerOf = Callable[[Scenario], Answer]
Shown = tuple[str, str, dt.date, tuple[tuple[str, tuple[str, ...]], ...]]


@st.cache_data(max_entries=8, ttl=KEPT_S, show_spinner="Reading the prices")
def _frame(snapshot_id: str, book: str, book_id: str, today: dt.date) -> pd.DataFrame:
    """The newest offers of a snapshot, with the prices of a price book if one is named."""
    if has_book(book):
        found = price_book.listed(snapshot_id, load_book(book), today).offers
    else:
        found = newest_per_place(snapshot(snapshot_id).offers)
    return offers.frame_of(found, today)


@st.cache_data(max_entries=64, ttl=KEPT_S, show_spinner=False)
def _cells(shown: Shown, _chosen: pd.DataFrame) -> pd.DataFrame:
    """The cheapest price by accelerator and cloud, cached by `shown`, which selects the rows."""
    return offers.heatmap(_chosen)


@st.cache_data(max_entries=64, ttl=KEPT_S, show_spinner=False)
def _heatmap(shown: Shown, theme: str, _cells: pd.DataFrame) -> chart_files.Spec:
    """The Vega-Lite specification of the heatmap."""
    return chart_files.spec_of(charts.heatmap(_cells, theme=theme))


def draw(answer_of: AnswerOf) -> None:
    """Draw the page: offers, cheapest prices and age by cloud, history, sources, quarantined
    rows."""
    scenario, today = link.scenario(), price_book.today()
    book_id = price_book.book_id(scenario)
    try:
        frame = _frame(scenario.prices, scenario.price_book, book_id, today)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    _draw_summary(frame, scenario, today)
    chosen, wanted = _draw_filters(frame)
    _draw_heatmap((scenario.prices, book_id, today, wanted), chosen)
    _draw_offers(chosen)
    _draw_freshness(frame, scenario.prices)
    over_time_section.draw(scenario, answer_of, frame["accelerator"].unique(), today)
    sources_section.draw()


def _draw_summary(frame: pd.DataFrame, scenario: Scenario, today: dt.date) -> None:
    st.markdown(f"**{as_text(offers.summary(frame, scenario.prices))}**")
    text, colour = offers.newest(frame, today)
    with st.container(horizontal=True):
        st.badge(as_text(text), color=colour)
        if scenario.price_book:
            st.badge(as_text(f"with price book {scenario.price_book}"), color="blue")
    st.caption(
        "An observation, not a quote: fresh is a day old at most; over a day and over a week are "
        "what the words say. A month is 730 hours."
    )


def _draw_filters(
    frame: pd.DataFrame,
) -> tuple[pd.DataFrame, tuple[tuple[str, tuple[str, ...]], ...]]:
    """Draw the filters; return the rows that match them and the chosen values."""
    choices = offers.choices(frame)
    filters.take_over({**choices, "unit": list(offers.UNITS)}, SINGLE)
    for note in filters.notes():
        st.warning(as_text(note))
    wanted = {}
    for column, name in zip(st.columns(len(offers.FILTERS)), offers.FILTERS, strict=True):
        wanted[name] = column.multiselect(
            offers.FILTERS[name],
            choices[name],
            key=filters.key(name),
            on_change=filters.edited,
            format_func=partial(offers.choice_label, name),
            placeholder="All",
            help=explained(ABOUT.get(name, "")),
        )
    st.radio(
        "Price",
        list(offers.UNITS),
        key=filters.key("unit"),
        on_change=filters.edited,
        format_func=offers.UNITS.__getitem__,
        horizontal=True,
        help=explained("GPU-hours, Instance"),
    )
    filters.write([*offers.FILTERS, "unit"], SINGLE)
    chosen = tuple((name, tuple(sorted(values))) for name, values in wanted.items() if values)
    return offers.narrowed(frame, wanted), chosen


def _draw_heatmap(of: Shown, chosen: pd.DataFrame) -> None:
    st.subheader("Cheapest GPU-hour by accelerator and cloud", anchor=False)
    cells = _cells(of, chosen)
    sentence = offers.heatmap_sentence(cells)
    if cells.empty:
        st.info("No offer is all of this: take a filter away.")
        return
    # A container of fixed height also scrolls sideways on a small screen.
    with st.container(height=charts.heatmap_px(cells), border=False):
        figure.draw_chart(
            drawn := figure.Figure(
                key="prices_heatmap",
                spec=_heatmap(of, figure.theme(), cells),
                alt="Cheapest USD per GPU-hour, a row an accelerator, a column a cloud. "
                + sentence,
                caption=f"{sentence} USD per GPU-hour of any purchase that the filters let "
                "through; a dash: not offered.",
                file="runcast_cheapest",
                data=lambda: offers.wide(cells),
            ),
            width="content",
        )
    figure.draw_words(drawn)


def _draw_offers(chosen: pd.DataFrame) -> None:
    st.subheader("Offers", anchor=False)
    unit = str(st.session_state[filters.key("unit")])
    shown = offers.table(chosen.head(offers.LISTED), unit).drop(columns=list(offers.IN_FILE))
    if shown.empty:
        return
    st.dataframe(
        shown,
        key="prices_offers",
        hide_index=True,
        height=TABLE_PX,
        width="stretch",
        alt="Offers, the cheapest GPU-hour first, with source, age and quality",
        column_config=head_help(
            shown.columns,
            {
                offers.UNITS[unit]: st.column_config.NumberColumn(format="$%.3g"),
                "Accelerator": st.column_config.Column(pinned=True, width=125),
                "Cloud": st.column_config.Column(width=90),
                "Instance": st.column_config.Column(width=200),
            },
        ),
    )
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(as_text(_listed_sentence(len(shown), len(chosen))))
    figure.draw_csv(
        right, lambda: offers.table(chosen, unit), file="runcast_offers", key="prices_offers_csv"
    )


def _draw_freshness(frame: pd.DataFrame, snapshot_id: str) -> None:
    st.subheader("Age by cloud", anchor=False)
    st.markdown(as_text(freshness.sentence(frame, snapshot_id)))
    sources_section.draw_table(freshness.ages(frame), "prices_freshness")


def _listed_sentence(listed: int, found: int) -> str:
    if listed == found:
        return f"{fmt.count(found)} offers, the cheapest GPU-hour first."
    return (
        f"The cheapest {fmt.count(listed)} of {fmt.count(found)} offers; a filter shows others, "
        "the CSV has all, with notes."
    )
