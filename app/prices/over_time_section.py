"""Price history on the Prices page: one price, spot against on-demand, a plan on a day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable

import pandas as pd
import streamlit as st

from app.document import chart_files
from app.document.escape import as_text
from app.document.page import draw_table
from app.plan import words as plan_words
from app.prices import charts, over_time
from app.web import figure
from app.web.answers import KEPT_S
from core.errors import RuncastError
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Answer
from pricing.history import cost_on
from pricing.series import Sku
from pricing.store.engine import Store

USUAL = "H100-80GB-SXM"  # the accelerator whose history is shown first
KEPT = 64  # cached charts, about 5 kB each


def draw(
    scenario: Scenario,
    answer_of: Callable[[Scenario], Answer],
    offered: Iterable[str],
    today: dt.date,
) -> None:
    """Draw the history of one chosen price, then the cost of the link's plan on another day."""
    st.subheader("Price history", anchor=False)
    store, sentence = over_time.store_or_sentence()
    if sentence:
        st.warning(as_text(sentence))
    if (chosen := _draw_choice(over_time.accelerators(offered), store)) is not None:
        try:
            _draw_price(chosen, store)
        except RuncastError as e:
            st.warning(as_text(str(e)))
    _draw_plan(scenario, answer_of, store, today)


def _draw_choice(kinds: list[str], store: Store | None) -> Sku | None:
    left, right = st.columns([1, 3])
    kind = left.selectbox(
        "Accelerator of the history", kinds, key="prices_history_accelerator",
        index=kinds.index(USUAL) if USUAL in kinds else 0,
    )  # fmt: skip
    if not (of_kind := over_time.skus(store, kind)):
        right.info(as_text(f"No price of {kind} has a history here yet."))
        return None
    return right.selectbox(
        "Price", of_kind, key=f"prices_history_sku_{kind}", format_func=over_time.label,
        index=over_time.longest(of_kind),
    )  # fmt: skip


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _chart(name: str, of: str, theme: str, _rows: pd.DataFrame) -> chart_files.Spec:
    """The Vega-Lite specification of a chart, cached by `of`, which identifies its rows."""
    made = {"history": charts.history, "ratio": charts.ratio}
    return chart_files.spec_of(made[name](_rows, theme=theme))


def _draw_price(sku: Sku, store: Store | None) -> None:
    prices = over_time.prices_of(sku, store)
    history = prices.chosen
    lines, sentence = over_time.lines(history), over_time.history_sentence(history)
    if lines.empty:
        st.info(as_text(sentence))
        return
    figure.draw(
        figure.Figure(
            key="prices_history",
            spec=_chart("history", lines.to_csv(), figure.theme(), lines),
            alt=f"USD per GPU-hour over time, a gap where it was not seen. {sentence}",
            caption=f"{sentence} Dots are where it was seen; a gap is never filled.",
            file="runcast_price_history",
            data=lambda: lines,
        )
    )
    if history.gaps:
        with st.expander(f"Gaps ({len(history.gaps)})"):
            draw_table(over_time.gaps(history))
    days = over_time.ratio_days(prices)
    market = over_time.market_sentence(over_time.market_of(prices))
    st.markdown(as_text(market))
    if not days.empty:
        figure.draw(
            figure.Figure(
                key="prices_ratio",
                spec=_chart("ratio", days.to_csv(), figure.theme(), days),
                alt=f"Spot price over on-demand price of the same machine, by day. {market}",
                caption="A day on which one of the two is not known is left blank.",
                file="runcast_spot_ratio",
                data=lambda: days,
            )
        )


def _draw_plan(
    scenario: Scenario,
    answer_of: Callable[[Scenario], Answer],
    store: Store | None,
    today: dt.date,
) -> None:
    """Draw what the link's plan would have cost; only on request, as planning takes a moment."""
    st.subheader("The plan of this link on another day", anchor=False)
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    year_ago = today - dt.timedelta(days=365)
    day = left.date_input("Day", value=year_ago, max_value=today, key="prices_plan_day")
    if not right.toggle("Price the plan on that day", key="prices_plan_on"):
        return
    try:
        answer = answer_of(scenario)
        plan = answer.chosen(scenario.plan)
        if plan is None:
            st.info(as_text(plan_words.answer_sentence(scenario, answer)))
            return
        found = cost_on(
            plan.offer,
            day,
            num_machines=plan.num_nodes,
            hours=as_float(plan.cost.paid_hours),
            store=store,
        )
    except RuncastError as e:
        st.warning(as_text(str(e)))
        return
    st.markdown(as_text(over_time.plan_on_sentence(plan, found)))
    st.caption("Its instances alone: no storage, no traffic, no credits.")
