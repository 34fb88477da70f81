"""The Compare page: every plan of the answer, and up to four of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.document import vocabulary
from app.document.durations import in_one_unit, of_days
from app.document.escape import as_text
from app.document.page import head_help
from app.forecast import price_book
from app.options import compare_section, families_section, heatmap_section
from app.options import document as plans
from app.options import filters as options_filters
from app.plan import answer_section, products
from app.plan import document as plan_document
from app.plan import words as plan_words
from app.scenario.link import Query, address_of, query_of
from app.web import figure, link
from app.web import form as web_form
from app.web.answers import KEPT_S, key_of
from app.web.selection import chosen
from core.scenario import Scenario
from core.scenario.types import MOST_PINNED
from core.search.plan import Answer

KEPT = 16  # lists of plans, up to 1.5 MB each
TABLE_PX = 420
TABLE, PINS, REFUSED = "options_table", "options_pins", "options_refused"
FULL = f"{MOST_PINNED} plans are pinned, the most there can be: take one off the list first."


@st.cache_data(max_entries=KEPT, ttl=KEPT_S, show_spinner=False)
def _every(query: Query, book_id: str, _scenario: Scenario, _answer: Answer) -> pd.DataFrame:
    """The table of every ranked plan, shared by all sessions that ask the same question."""
    return plans.every(_scenario, _answer)


def draw(scenario: Scenario, answer: Answer, options: web_form.Options) -> None:
    """Draw the page for a scenario and its answer."""
    today = price_book.today()
    st.markdown(f"**{as_text(plan_words.coverage_sentence(answer))}**")
    st.caption(as_text(plan_words.not_compared_sentence(answer)))
    answer_section.draw_excluded(answer, "options_left_out")
    if not answer.plans:
        st.error(as_text(plan_words.answer_sentence(scenario, answer)))
        compare_section.draw_other_link(scenario, answer, today)
        return
    query, book_id = query_of(scenario), key_of(scenario)[1]
    every = _every(query, book_id, scenario, answer)
    has_limits = scenario.deadline_days is not None or scenario.budget_usd is not None
    options_filters.draw(scenario, every, has_limits=has_limits)
    filters = plans.filters_of(scenario, has_limits=has_limits)
    kept = plans.in_order(plans.narrowed(every, filters), scenario.list_order)
    _draw_table(scenario, kept, len(every), has_limits=has_limits)
    _draw_pins(scenario, every, kept)
    compare_section.draw_pinned(scenario, answer, today)
    plan = chosen(scenario, answer)
    families_section.draw(query, book_id, scenario, plan, vocabulary.machine(plan))
    heatmap_section.draw(query, book_id, scenario, answer, filters, every, kept)
    compare_section.draw_other_link(scenario, answer, today)


# --- the table and the pins ----------------------------------------------------------------------


def _pin(wanted: Sequence[str]) -> bool:
    """Pin these plans in this order, unless there are too many; return whether it did."""
    if len(wanted) > MOST_PINNED:
        st.session_state[REFUSED] = True
        return False
    link.look(pinned=tuple(wanted))
    return True


def _rows_chosen(ids: tuple[str, ...], key: str) -> None:
    """Callback of the table: its selected rows become the pinned plans."""
    rows = [ids[n] for n in st.session_state[key]["selection"]["rows"] if n < len(ids)]
    if not _pin(plans.pinned_by_rows(link.scenario().pinned, ids, rows)):
        link.redraw()  # deselects the refused row


def _listed_chosen() -> None:
    _pin(st.session_state[PINS])
    link.redraw()


def _draw_table(scenario: Scenario, kept: pd.DataFrame, ranked: int, *, has_limits: bool) -> None:
    unit = scenario.list_unit
    left, *buttons = st.columns([4, 1, 1], vertical_alignment="bottom")
    if kept.empty:
        left.markdown(as_text(plans.found_sentence(0, ranked, scenario.list_order)))
        st.info("No ranked plan is all of this: take a filter away.")
        return
    each = products.once(kept, kept[plans.ID].isin(scenario.pinned).to_numpy())
    left.markdown(as_text(plans.found_sentence(len(kept), ranked, scenario.list_order, len(each))))
    files = figure.table_files(lambda: kept, address_of(scenario, st.context.url))
    for place, (ending, (mime, made)) in zip(buttons, files.items(), strict=True):
        place.download_button(
            f"All as {'CSV' if ending == 'csv' else 'Parquet'}",
            data=made,
            file_name=f"runcast_options.{ending}",
            mime=mime,
            key=f"options_{ending}",
            on_click="ignore",
            width="stretch",
        )
    shown = in_one_unit(plans.listed(each, unit, has_limits=has_limits))
    ids = tuple(map(str, each[plans.ID].head(plans.LISTED)))
    key = f"{TABLE}_{link.generation()}_{abs(hash((ids, unit)))}"
    st.dataframe(
        shown,
        key=key,
        hide_index=True,
        height=min(TABLE_PX, 37 + 35 * len(shown)),
        column_config=head_help(shown.columns, _columns(unit, shown)),
        on_select=lambda: _rows_chosen(ids, key),
        selection_mode="multi-row",
        selection_default={
            "selection": {
                "rows": [n for n, plan_id in enumerate(ids) if plan_id in scenario.pinned],
                "columns": [],
                "cells": [],
            }
        },
        placeholder="",
        alt="Ranked plans that the filters let through; chosen rows are pinned",
    )
    if st.session_state.pop(REFUSED, False):
        st.warning(FULL)


def _columns(unit: str, shown: pd.DataFrame) -> dict[str, Any]:
    """Widths, formats and hints of the columns that are shown."""
    config, formats = st.column_config, products.formats(shown)
    short = unit == "run"
    known = {
        "#": config.NumberColumn(width=50, pinned=True, help="Rank"),
        plans.COST_IN[unit]: config.NumberColumn(
            format=formats[plan_document.EXPECTED_COST] if short else "$%.4g",
            help="Mean, failures and start-up included",
        ),
        plan_document.EXPECTED_TIME: config.NumberColumn(
            format=formats[plan_document.EXPECTED_TIME], help="Mean, failures and start-up included"
        ),
        plan_document.ON_TIME: config.NumberColumn(
            format=formats[plan_document.ON_TIME], help="That the run ends by the deadline"
        ),
        plans.GPU: config.TextColumn(width=130),
        plans.GPUS: config.NumberColumn(width=65, format=formats["GPUs"]),
        plans.CLOUD: config.TextColumn(width=95),
        "Instance": config.TextColumn(width=215),
        plans.PURCHASE: config.TextColumn(width=95),
        plan_document.MFU: config.NumberColumn(
            format=formats[plan_document.MFU], help="Model FLOPs over the dense 16-bit peak"
        ),
        plan_document.SPEED: config.NumberColumn(format=formats[plan_document.SPEED]),
        plan_document.MEMORY: config.NumberColumn(format=formats[plan_document.MEMORY]),
        plans.OOM: config.NumberColumn(format="percent"),
        plan_document.PRICE: config.NumberColumn(format=formats[plan_document.PRICE]),
    }
    return {name: known[head] for name in map(str, shown) if (head := of_days(name)) in known}


def _draw_pins(scenario: Scenario, every: pd.DataFrame, kept: pd.DataFrame) -> None:
    """The pinned plans as a list, which a keyboard can edit too."""
    labels = plans.labels(every[every[plans.ID].isin(scenario.pinned)])
    labels |= plans.labels(kept.head(plans.LISTED))
    st.session_state[PINS] = list(scenario.pinned)  # the scenario holds the pins
    st.multiselect(
        f"Pinned plans (up to {MOST_PINNED}, kept in the link)",
        list(labels),
        key=PINS,
        format_func=lambda plan_id: labels.get(plan_id, plan_id),
        max_selections=MOST_PINNED,
        select_all=False,
        placeholder="Choose rows of the table, or plans here",
        on_change=_listed_chosen,
        help="The same choice as the rows of the table. The first one is what the others are "
        "compared with.",
    )
