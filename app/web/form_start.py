"""The top of the form: examples, a reset, and the task, which brings its usual values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from app.forecast import resolve
from app.scenario.link import changed, parse
from app.scenario.starting import CONTINUE, EXAMPLES, USUAL, as_continued, continues, switched
from app.web import form_part, link
from app.web.form_words import OPTION_LABELS
from core.errors import ScenarioError
from core.scenario import Scenario

EXAMPLE, TASK = "form_example", "form_task"
_TYPED = "form_typed"  # the fields that this session typed: a task does not change them

Fill = Callable[[Scenario], None]


def typed(name: str) -> None:
    """Record that the user gave a field."""
    st.session_state[_TYPED] = st.session_state.get(_TYPED, frozenset()) | {name}


def draw(fill: Fill) -> None:
    """Draw the examples and the reset. `fill` sets the widgets to another scenario."""
    with st.container(horizontal=True, gap="small"):
        st.menu_button(
            "Examples", list(EXAMPLES), key=EXAMPLE, on_click=_example_chosen, args=(fill,)
        )
        st.button("Reset", key="form_reset", on_click=_opened, args=(link.FIRST_VISIT, fill))


def _example_chosen(fill: Fill) -> None:
    if (name := st.session_state[EXAMPLE]) in EXAMPLES:
        _opened(EXAMPLES[name], fill)


def _opened(query: Mapping[str, str], fill: Fill) -> None:
    """Open a scenario as a link would, and forget what was typed."""
    asked = {name: [value] for name, value in query.items()}
    scenario, notes = parse(asked, resolve.resolve, resolve.current_prices())
    for name in (_TYPED, form_part.OPEN):
        st.session_state.pop(name, None)
    link.edit(scenario, notes)
    fill(scenario)


def _task() -> str:
    """The task on the page: the scenario's, or its continuation."""
    return CONTINUE if continues(link.scenario()) else link.scenario().task


def _task_chosen(fill: Fill) -> None:
    before, after = _task(), str(st.session_state[TASK])
    typed_here = st.session_state.get(_TYPED, frozenset())
    try:
        new = switched(link.scenario(), before, after, typed_here)
        asked = as_continued(changed(link.scenario(), **new), after == CONTINUE)
        scenario, notes = resolve.resolve(asked)
    except ScenarioError as e:
        scenario, notes = link.scenario(), [e.as_labelled]
    link.edit(scenario, notes)
    fill(scenario)


def draw_task(fill: Fill, about: str | None) -> None:
    """Draw the task."""
    st.session_state[TASK] = _task()  # the scenario holds it
    st.selectbox(
        "Task",
        list(USUAL),
        key=TASK,
        format_func=OPTION_LABELS.__getitem__,
        on_change=_task_chosen,
        args=(fill,),
        help=about,
    )
