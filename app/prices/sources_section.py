"""Sources on the Prices page: when each last answered, a refresh, and quarantined rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.document import format as fmt
from app.document.escape import as_text
from app.document.page import head_help
from app.document.table import Table
from app.prices import sources
from app.prices.over_time import store_or_sentence
from app.prices.refresh_job import Progress, RefreshJob
from app.scenario.link import changed
from app.web import figure, link
from core.errors import RuncastError
from pricing import offers as prices
from pricing.held_lists import Rows
from pricing.store.engine import Store
from pricing.store.quarantine import Held
from pricing.store.queries import Run

POLL_S = 1.0
TABLE_PX = 460
# Widths that fit the longest sentence and the last column on a screen 1440 px wide.
COLUMNS: dict[str, Mapping[str, Any]] = {
    "Source": {"width": 115},
    "Live": {"width": 116},
    "Last answer": st.column_config.DatetimeColumn(format="distance", width=94),
    "Prices": {"width": 55},
    "Held back": {"width": 72},
    "Last said": {"width": 212},
    "What it lists": {"width": 279},
    "Seconds": {"width": 62},
}


@st.cache_resource
def job() -> RefreshJob:
    """The refresh job of this server, shared by all visitors."""
    return RefreshJob()


def draw() -> None:
    """Draw the sources with their last answers, the refresh button, past refreshes, quarantine."""
    st.subheader("Sources", anchor=False)
    state, sentence = sources.state_or_sentence()
    if sentence:
        st.error(as_text(sentence))
    st.markdown(as_text(sources.never_live_sentence(state)))
    _draw_refresh()
    draw_table(sources.sources_table(state), "prices_sources")
    store, sentence = store_or_sentence()
    runs, more = sources.past_runs(store)
    _draw_runs(sources.runs_table(runs), sentence or more)
    _draw_quarantine(store)


def _draw_refresh() -> None:
    st.button("Refresh now", key="prices_refresh", on_click=_start, icon=":material/refresh:")
    if refused := st.session_state.pop("prices_refresh_refused", ""):
        st.info(as_text(refused))
    if job().progress().running:
        # Outside of the fragment, so that a click redraws the whole page.
        st.button("Show the prices as they are now", key="prices_refreshed", on_click=_use_newest)
        st.fragment(_draw_progress, run_every=POLL_S)()
    elif job().progress().sentence:
        _draw_outcome(job().progress())


def _start() -> None:
    st.session_state["prices_refresh_refused"] = job().start()


def _draw_progress() -> None:
    """Draw the progress; a fragment that reruns by itself until the whole page is redrawn."""
    now = job().progress()
    st.progress(now.fraction, text=f"{len(now.ended)} of {now.total} sources have answered")
    for name, outcome in now.ended:
        st.caption(as_text(f"{name}: {outcome}"))
    if not now.running:
        _draw_outcome(now)


def _draw_outcome(now: Progress) -> None:
    (st.warning if now.failed else st.success)(as_text(now.sentence))


def _use_newest() -> None:
    """Switch the link from the prices it was opened with to the newest ones."""
    link.edit(changed(link.scenario(), prices=prices.installed_id()))


def _draw_runs(table: Table[Run], sentence: str) -> None:
    st.subheader("Last refreshes", anchor=False)
    if sentence:
        st.warning(as_text(sentence))
    if not table.rows:
        st.info("No refresh has run on this installation: the prices are the bundled ones.")
        return
    draw_table(table, "prices_runs")


def _draw_quarantine(store: Store | None) -> None:
    st.subheader("Held back", anchor=False)
    table, releasable, sentence = sources.held_table(store)
    if sentence:
        st.warning(as_text(sentence))
    if not table.rows:
        st.info("No price is held back.")
        return
    if store is not None:
        for source, rows in sources.lists_held().items():
            _draw_list(store, source, rows)
    st.markdown("Prices that are not believed, each with the reason; the last good ones stay.")
    draw_table(table, "prices_held")
    if store is not None and releasable:
        _draw_release(store, releasable)


def _draw_list(store: Store, source: str, rows: Rows) -> None:
    """Draw a whole list that is held back, with what it would change, to take or to leave it."""
    key = f"prices_list_{source}"
    with st.form(key, border=True):
        st.markdown(as_text(sources.list_sentence(rows)))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            by = st.text_input("Your name", key=f"{key}_by", max_chars=80).strip()
            why = st.text_input("Why", key=f"{key}_why", max_chars=300)
            taken = st.form_submit_button("Take it", key=f"{key}_take")
            left = st.form_submit_button("Leave it", key=f"{key}_leave")
    if not (taken or left):
        return
    if not by:
        st.error("A decision is recorded under a name: give yours.")
        return
    try:
        if left:
            st.success(as_text(sources.leave_sentence(source, by=by, why=why)))
            return
        sentence = sources.take_sentence(store, source, by=by, why=why)
    except RuncastError as e:
        st.error(as_text(str(e)))
        return
    refused = job().start([source], is_decided=True)
    st.success(as_text(f"{sentence} {refused}"))
    if not refused:
        st.fragment(_draw_progress, run_every=POLL_S)()


def _draw_release(store: Store, releasable: tuple[Held, ...]) -> None:
    with st.expander("Release a price"):
        st.markdown("Say that a price is right. The next refresh publishes about this price there.")
        with st.form("prices_release", border=False):
            held = st.selectbox(
                "Price", releasable, format_func=sources.held_label, key="prices_release_which"
            )
            by = st.text_input("Your name", key="prices_release_by", max_chars=80)
            why = st.text_input("Why it is right", key="prices_release_why", max_chars=300)
            if not st.form_submit_button("Release", key="prices_release_submit"):
                return
        if not by.strip():
            st.error("A release is recorded under a name: give yours.")
            return
        try:
            sentence = sources.release_sentence(store, held, by=by.strip(), why=why)
        except RuncastError as e:
            st.error(as_text(str(e)))
            return
        st.success(as_text(sentence))


def draw_table(table: Table[Any], key: str) -> None:
    """Draw a table that can be sorted and searched, with a button for its CSV."""
    height = min(TABLE_PX, 37 * (len(table.rows) + 1))
    st.dataframe(table.frame(), key=key, hide_index=True, height=height, width="stretch",
                 alt=table.caption, column_config=head_help(table.head, COLUMNS),
                 placeholder=fmt.MISSING)  # fmt: skip
    figure.draw_csv(st.container(width=200), table.frame, file=f"runcast_{key}", key=f"{key}_csv")
