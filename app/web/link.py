"""Which scenario the page shows: the address bar and the session, kept as one.

The rule: the address wins when it is not what this page last wrote (first run, Back, Forward, an
edited address); otherwise the session wins and the address is written, before the page draws, and
only when it differs, so that one edit is one step of the browser's history.

An edit that arrives while the browser still shows the address of the edit before it must not look
like Back: `edit` marks the run that it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from app.scenario import age as scenario_age
from app.scenario.link import VIEW, Resolve, changed, parse
from core.scenario import Scenario
from core.scenario.types import MOST_PINNED

Expand = Callable[[Mapping[str, list[str]]], tuple[Mapping[str, list[str]], list[str]]]

# What somebody sees who follows no link: without a deadline the cheapest plan is a slow one.
FIRST_VISIT = {"deadline_days": "14"}

_SCENARIO = "link_scenario"
_NOTES = "link_notes"
_SEEN = "link_seen"  # the query that the page last wrote or took over
_EDITED = "link_edited"
_TAKEN_OVER = "link_taken_over"
_GENERATION = "link_generation"


def take_over(resolve: Resolve, prices: str, expand: Expand = lambda query: (query, [])) -> bool:
    """Let the address win if it is not what was last seen; say whether it did.

    `expand` makes the long query of a short link, and says what is wrong with it.
    """
    state = st.session_state
    names = [name for name in st.query_params if not name.startswith(VIEW)]
    query = {name: st.query_params.get_all(name) for name in names}
    edited = state.pop(_EDITED, False)
    state[_TAKEN_OVER] = not (_SCENARIO in state and (edited or query == state.get(_SEEN)))
    if not state[_TAKEN_OVER]:
        return False
    expanded, said = expand(query)
    asked = expanded or {name: [value] for name, value in FIRST_VISIT.items()}
    state[_SCENARIO], notes = parse(asked, resolve, prices)
    state[_NOTES] = said + notes
    state[_SEEN] = query
    redraw()
    return True


def is_taken_over() -> bool:
    """Whether this run of the page took its scenario from the address."""
    return bool(st.session_state.get(_TAKEN_OVER))


def write() -> None:
    """Put the scenario into the address; no new step of history when it is there already."""
    flat = scenario().to_query()
    address = st.query_params.to_dict()
    view = {name: value for name, value in address.items() if name.startswith(VIEW)}
    if address != flat | view:
        st.query_params.from_dict(flat | view)
    st.session_state[_SEEN] = {name: [value] for name, value in flat.items()}


def scenario() -> Scenario:
    """The last valid scenario of this session."""
    held = st.session_state[_SCENARIO]
    return held if isinstance(held, Scenario) else Scenario()


def notes() -> tuple[str, ...]:
    """What the link asked for and did not get, one sentence each."""
    return tuple(st.session_state.get(_NOTES, ()))


def generation() -> int:
    """Counts changes that a drawn table cannot follow: part of its key, so it starts afresh."""
    return int(st.session_state.get(_GENERATION, 0))


def redraw() -> None:
    """Let what has `generation` in its key start afresh."""
    st.session_state[_GENERATION] = generation() + 1


def edit(new: Scenario, notes: Sequence[str] = ()) -> None:
    """Replace the scenario, and what is said of it; for callbacks of widgets. One that another
    version made, as a file may be, is said to be."""
    st.session_state[_SCENARIO] = scenario_age.stamped(new)
    st.session_state[_EDITED] = True
    st.session_state[_NOTES] = [*notes, *scenario_age.since(new, "The scenario")]
    redraw()


def keep() -> None:
    """Let the next run keep the scenario of the session: nobody has moved in the history."""
    st.session_state[_EDITED] = True
    redraw()


def look(**fields: object) -> None:
    """Change what is looked at of the answer; for callbacks of widgets. ScenarioError if a value
    is wrong."""
    st.session_state[_SCENARIO] = changed(scenario(), **fields)
    st.session_state[_EDITED] = True


def choose(plan_id: str) -> None:
    """Select a plan of the answer; for callbacks of widgets."""
    look(plan=plan_id)


def drop_plan(note: str | None) -> None:
    """Forget a selected plan that the answer does not have; the note says so to a reader."""
    st.session_state[_SCENARIO] = changed(scenario(), plan="")
    if note:
        st.session_state[_NOTES] = [*notes(), note]
    write()


def pin(plan_id: str, *, pinned: bool) -> None:
    """Pin a plan for the comparison, or take it off; for callbacks of widgets. Beyond as many as
    stand side by side none is pinned: the page offers it no more."""
    others = tuple(p for p in scenario().pinned if p != plan_id)
    look(pinned=(*others, plan_id) if pinned and len(others) < MOST_PINNED else others)


def drop_pins(gone: tuple[str, ...], note: str | None) -> None:
    """Forget pinned plans that the answer does not have; the note says so to a reader."""
    kept = tuple(p for p in scenario().pinned if p not in gone)
    st.session_state[_SCENARIO] = changed(scenario(), pinned=kept)
    if note:
        st.session_state[_NOTES] = [*notes(), note]
    write()
