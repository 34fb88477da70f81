"""Price history on the Price data page: one price, spot beside on-demand, a plan on a day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable

import pandas as pd
import streamlit as st

from app import prices_charts, words
from app import prices_over_time as over_time
from app.accuracy_tables import csv_bytes
from app.escape import as_text
from core.errors import RuncastError
from core.plan import Answer
from core.scenario import Scenario
from pricing.series import Sku
from pricing.store.engine import Store, StoreError


def draw(
    scenario: Scenario,
    answer_of: Callable[[Scenario], Answer],
    offered: Iterable[str],
    theme: str,
    today: dt.date,
) -> None:
    """The history of one chosen price, then the plan of the link on another day."""
    st.subheader("Price history", anchor=False)
    store, sentence = over_time.store_or_sentence()
    if sentence:
        st.warning(as_text(sentence))
    if (chosen := _draw_choice(over_time.accelerators(offered), store)) is not None:
        try:
            _draw_price(chosen, store, theme)
        except StoreError as e:
            st.warning(as_text(str(e)))
    _draw_plan(scenario, answer_of, store, today)


def _draw_choice(kinds: list[str], store: Store | None) -> Sku | None:
    left, right = st.columns([1, 3])
    kind = left.selectbox(
        "Accelerator of the history", kinds, key="prices_history_accelerator",
        index=over_time.first_choice(kinds),
    )  # fmt: skip
    if not (of_kind := over_time.skus(store, kind)):
        right.info(as_text(f"No price of {kind} has a history here yet."))
        return None
    return right.selectbox(
        "Price", of_kind, key=f"prices_history_sku_{kind}", format_func=over_time.label,
        index=over_time.longest(of_kind),
    )  # fmt: skip


def _draw_price(sku: Sku, store: Store | None, theme: str) -> None:
    prices = over_time.prices_of(sku, store)
    history = prices.chosen
    lines, sentence = over_time.lines(history), over_time.history_sentence(history)
    if lines.empty:
        st.info(as_text(sentence))
        return
    st.altair_chart(
        prices_charts.history(lines, theme=theme),
        key="prices_history",
        width="stretch",
        alt=f"USD per GPU-hour over time, a gap where it was not seen. {sentence}",
    )
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(as_text(f"{sentence} Dots are where it was seen; a gap is never filled."))
    _download(right, lines, "runcast_price_history.csv", "prices_history_csv")
    if history.gaps:
        with st.expander(f"Gaps ({len(history.gaps)})"):
            st.table(over_time.gaps(history).map(as_text), hide_index=True)
    days = over_time.ratio_days(prices)
    st.markdown(as_text(over_time.market_sentence(over_time.market_of(prices))))
    if not days.empty:
        st.altair_chart(
            prices_charts.ratio(days, theme=theme),
            key="prices_ratio",
            width="stretch",
            alt="Spot price over on-demand price of the same machine and place, by day",
        )
        _download(st.container(width=200), days, "runcast_spot_ratio.csv", "prices_ratio_csv")


def _draw_plan(
    scenario: Scenario,
    answer_of: Callable[[Scenario], Answer],
    store: Store | None,
    today: dt.date,
) -> None:
    """What the plan of the link would have cost; asked for, because a plan takes a moment."""
    st.subheader("The plan of this link on another day", anchor=False)
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    day = left.date_input(
        "Day", value=over_time.a_year_before(today), max_value=today, key="prices_plan_day"
    )
    if not right.toggle("Price the plan on that day", key="prices_plan_on"):
        return
    try:
        answer = answer_of(scenario)
        plan = answer.chosen(scenario.plan)
        if plan is None:
            st.info(as_text(words.answer_sentence(scenario, answer)))
            return
        found = over_time.plan_on(plan, day, store)
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    st.markdown(as_text(over_time.plan_on_sentence(plan, found)))
    st.caption("Its instances alone: no storage, no traffic, no credits.")


def _download(
    place: st.delta_generator.DeltaGenerator, frame: pd.DataFrame, name: str, key: str
) -> None:
    place.download_button(
        "Download CSV",
        data=lambda: csv_bytes(frame),
        file_name=name,
        mime="text/csv",
        key=key,
        on_click="ignore",
        width="stretch",
    )
