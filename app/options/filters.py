"""The filter, sort and unit widgets of the Options page.

Their values are fields of the scenario, and so part of the link; the widgets only show them.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from app.document import vocabulary
from app.document.escape import as_text
from app.document.glossary import explained
from app.options import document as plans
from app.web import link
from core.errors import ScenarioError
from core.scenario import Scenario
from core.scenario.types import MOST_LISTED

# Number fields: the step of the arrows, and the maximum.
NUMBERS: tuple[tuple[str, int | float, int | float], ...] = (
    ("list_min_gpus", 8, 131_072),
    ("list_max_gpus", 8, 131_072),
    ("list_max_usd", 1000.0, 1e13),
    ("list_max_days", 1.0, 36_500.0),
)
# The glossary term of each list.
ABOUT = {"list_purchase": "On demand, Spot, Reserved, Capacity block", "list_cloud": "Instance"}
WRONG = "options_wrong"  # the error of the last edit


def key(field: str) -> str:
    """The session key of a field's widget."""
    return f"options_{field}"


def follow(scenario: Scenario, field: str) -> None:
    """Set a field's widget to the scenario's value; call before it is drawn."""
    value = getattr(scenario, field)
    shown = list(value) if isinstance(value, tuple) else value
    if key(field) not in st.session_state or st.session_state[key(field)] != shown:
        st.session_state[key(field)] = shown


def edited(field: str) -> None:
    """Callback of a field's widget; an invalid value changes nothing."""
    try:
        link.look(**{field: st.session_state[key(field)]})
    except ScenarioError as e:
        st.session_state[WRONG] = e.as_labelled


def _clear() -> None:
    link.look(**{n: Scenario.model_fields[n].default for n in plans.FILTERS})


def _common(scenario: Scenario, field: str) -> dict[str, Any]:
    """The arguments that every widget of a field takes."""
    follow(scenario, field)
    return {
        "label": plans.LABELS.get(field, Scenario.model_fields[field].title or field),
        "key": key(field),
        "on_change": edited,
        "args": (field,),
    }


def draw(scenario: Scenario, every: pd.DataFrame, *, has_limits: bool) -> None:
    """The filter, sort and unit widgets."""
    choices = plans.choices(every)
    *places, last = st.columns(4)
    for place, name in zip(places, plans.LABELS, strict=True):
        offered, held = choices[name], getattr(scenario, name)
        place.multiselect(
            **_common(scenario, name),
            options=[*offered, *(v for v in held if v not in offered)],
            format_func=vocabulary.purchase if name == "list_purchase" else str,
            max_selections=MOST_LISTED,
            placeholder="All",
            help=explained(ABOUT.get(name, plans.LABELS[name])),
        )
    last.selectbox(
        **_common(scenario, "list_order"),
        options=list(plans.ORDERS),
        format_func=_order_label,
        help=explained("MFU, tokens/s, out of memory"),
    )
    for place, (name, step, most) in zip(st.columns(4), NUMBERS, strict=True):
        place.number_input(
            **_common(scenario, name),
            value=None,
            min_value=1 if isinstance(step, int) else 0.0,
            max_value=most,
            step=step,
            format=None if isinstance(step, int) else "%.12g",
            placeholder="Any",
        )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.radio(
            **_common(scenario, "list_unit"),
            options=list(plans.UNITS),
            format_func=plans.UNITS.__getitem__,
            horizontal=True,
            help=explained("GPU-hours"),
        )
        st.checkbox(
            **_common(scenario, "list_within_limits"),
            disabled=not has_limits,
            help=None if has_limits else "Needs a deadline or a budget",
        )
        about = Scenario.model_fields["list_frontier"].description
        st.checkbox(**_common(scenario, "list_frontier"), help=about)
        if given := plans.filters_of(scenario, has_limits=has_limits).num_given:
            st.button(f"Clear filters ({given})", key="options_clear", on_click=_clear)
    if wrong := st.session_state.pop(WRONG, None):
        st.error(as_text(wrong))


def _order_label(name: str) -> str:
    by = plans.ORDERS[name][0]
    return by[0].upper() + by[1:]
