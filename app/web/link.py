"""Which scenario the page shows: keeps the address bar and the session in step.

The rule: the address wins when it is not what this page last wrote (first run, Back, Forward, an
edited address). Otherwise the session wins, and the address is written before the page draws, only
if it differs, so that one edit is one step in the browser's history.

An edit may arrive while the browser still shows the address of the previous edit. It must not look
like Back, so `edit` marks the run that it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from app.scenario import age as scenario_age
from app.scenario.link import VIEW, Resolve, changed, parse
from core.scenario import Scenario
from core.scenario.types import MOST_PINNED

Expand = Callable[[Mapping[str, list[str]]], tuple[Mapping[str, list[str]], list[str]]]

# The scenario without a link: without a deadline the cheapest plan would be a slow one.
FIRST_VISIT = {"deadline_days": "14"}

_SCENARIO = "link_scenario"
_NOTES = "link_notes"
_SEEN = "link_seen"  # the query that the page last wrote or took over
_EDITED = "link_edited"
_TAKEN_OVER = "link_taken_over"
_GENERATION = "link_generation"
_KEPT = "link_kept"  # the plan that stayed selected in another order, though nobody chose it


def take_over(resolve: Resolve, prices: str, expand: Expand = lambda query: (query, [])) -> bool:
    """Take the scenario from the address if it is not what was last seen; return whether it did.

    `expand` turns a short link into its long query, and returns what is wrong with it.
    """
    state = st.session_state
    query = {n: st.query_params.get_all(n) for n in st.query_params if not n.startswith(VIEW)}
    edited = state.pop(_EDITED, False)
    state[_TAKEN_OVER] = not (_SCENARIO in state and (edited or query == state.get(_SEEN)))
    if not state[_TAKEN_OVER]:
        return False
    expanded, wrong = expand(query)
    asked = expanded or {name: [value] for name, value in FIRST_VISIT.items()}
    state.pop(_KEPT, None)
    state[_SCENARIO], notes = parse(asked, resolve, prices)
    state[_NOTES] = wrong + notes
    state[_SEEN] = query
    redraw()
    return True


def write() -> None:
    """Put the scenario into the address; adds no step to the history if it is there already."""
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
    """The parts of the link that could not be used, one sentence each."""
    return tuple(st.session_state.get(_NOTES, ()))


def generation() -> int:
    """A count that is part of a table's key: when it grows, the table is drawn afresh."""
    return int(st.session_state.get(_GENERATION, 0))


def redraw() -> None:
    """Draw the widgets that have `generation` in their key afresh."""
    st.session_state[_GENERATION] = generation() + 1


def edit(new: Scenario, notes: Sequence[str] = ()) -> None:
    """Replace the scenario and its notes; for callbacks of widgets. A scenario that another
    version wrote, such as an old file, gets a note."""
    st.session_state[_SCENARIO] = scenario_age.stamped(new)
    st.session_state[_EDITED] = True
    st.session_state[_NOTES] = [*notes, *scenario_age.since(new, "The scenario")]
    redraw()


def keep() -> None:
    """Make the next run keep the session's scenario: this is not a step in the history."""
    st.session_state[_EDITED] = True
    redraw()


def look(**fields: object) -> None:
    """Change which part of the answer is shown; for callbacks of widgets. Raises ScenarioError if
    a value is wrong."""
    st.session_state[_SCENARIO] = changed(scenario(), **fields)
    st.session_state[_EDITED] = True


def choose(plan_id: str) -> None:
    """Select a plan of the answer; for callbacks of widgets."""
    st.session_state.pop(_KEPT, None)
    look(plan=plan_id)


def keep_selected(plan_id: str) -> None:
    """Remember that a plan which nobody chose stays selected while its answer is sorted."""
    st.session_state[_KEPT] = plan_id


def follow() -> dict[str, object]:
    """What an edit of the scenario has to change, so that the page is about the recommended plan
    again where nobody chose another one."""
    kept = st.session_state.get(_KEPT)
    return {"plan": ""} if kept and kept == scenario().plan else {}


def write_in_part(first: str) -> None:
    """Put an edit that only a part of the page follows into the address. A plan that was kept needs
    no name there once it is the first again."""
    if first == st.session_state.get(_KEPT) == scenario().plan:
        st.session_state[_SCENARIO] = changed(scenario(), plan="")
        del st.session_state[_KEPT]
    st.session_state.pop(_EDITED, None)  # it marks the next run of the whole page
    write()


def drop(note: str, **fields: object) -> None:
    """Change what the answer does not have; the reader of a link that named it gets the note."""
    st.session_state[_SCENARIO] = changed(scenario(), **fields)
    if st.session_state[_TAKEN_OVER]:
        st.session_state[_NOTES] = [*notes(), note]
    write()


def pin(plan_id: str, *, pinned: bool) -> None:
    """Pin a plan for the comparison, or unpin it; for callbacks of widgets. Does nothing when the
    comparison is full."""
    others = tuple(p for p in scenario().pinned if p != plan_id)
    look(pinned=(*others, plan_id) if pinned and len(others) < MOST_PINNED else others)
