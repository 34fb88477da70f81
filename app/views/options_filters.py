"""The filters, the order and the unit of the Options page, as widgets that a keyboard reaches."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app import options_tables as plans
from app.options_tables import Filters

NUMBERS = (
    ("min_gpus", "GPUs, at least", 8.0),
    ("max_gpus", "GPUs, at most", 8.0),
    ("max_usd", "Cost of the run, at most (USD)", 1000.0),
    ("max_days", "Time, at most (days)", 1.0),
)


def _key(name: str) -> str:
    return f"options_filter_{name}"


def _order_label(name: str) -> str:
    by = plans.ORDERS[name][0]
    return by[0].upper() + by[1:]


def _clear() -> None:
    for name in ("gpu", "cloud", "purchase"):
        st.session_state[_key(name)] = []
    for name, _, _ in NUMBERS:
        st.session_state[_key(name)] = None
    for name in ("within_limits", "frontier"):
        st.session_state[_key(name)] = False


def draw(every: pd.DataFrame, *, has_limits: bool) -> tuple[Filters, str, str]:
    """The filters, the order and the unit, as widgets that a keyboard reaches."""
    choices = plans.choices(every)
    top = st.columns(4)
    names: dict[str, tuple[str, ...]] = {}
    for column, (name, label) in zip(
        top, (("gpu", "GPU"), ("cloud", "Cloud"), ("purchase", "Purchase")), strict=False
    ):
        held = st.session_state.get(_key(name)) or []
        offered = choices[name]
        names[name] = tuple(
            column.multiselect(
                label,
                [*offered, *(v for v in held if v not in offered)],
                key=_key(name),
                placeholder="All",
                persist_state="session",
            )
        )
    order = top[3].selectbox(
        "Sort by",
        list(plans.ORDERS),
        key="options_order",
        format_func=_order_label,
        persist_state="session",
    )
    numbers = {
        name: column.number_input(
            label,
            value=None,
            min_value=0.0,
            step=step,
            format="%g",
            key=_key(name),
            placeholder="Any",
            persist_state="session",
        )
        for column, (name, label, step) in zip(st.columns(4), NUMBERS, strict=True)
    }
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        unit = st.radio(
            "Cost",
            list(plans.UNITS),
            key="options_unit",
            format_func=plans.UNITS.__getitem__,
            horizontal=True,
            persist_state="session",
        )
        within = st.checkbox(
            "Within deadline and budget",
            key=_key("within_limits"),
            disabled=not has_limits,
            help="Needs a deadline or a budget" if not has_limits else None,
            persist_state="session",
        )
        frontier = st.checkbox(
            "Fastest or cheapest only",
            key=_key("frontier"),
            help="No other priced plan is both cheaper and faster",
            persist_state="session",
        )
        filters = Filters(
            gpu=names["gpu"], cloud=names["cloud"], purchase=names["purchase"],
            within_limits=within and has_limits, frontier=frontier, **numbers,
        )  # fmt: skip
        if filters.num_given:
            st.button(f"Clear filters ({filters.num_given})", key="options_clear", on_click=_clear)
    return filters, order, str(unit or "run")
