"""What the Plan page shows while the whole catalogue is searched: the usual accelerators.

A search of every accelerator takes seconds, a search of two a fraction of a second. The page shows
the two at once, says so, stays usable, and shows the whole answer as soon as it is there. An answer
that is cached, or arrives soon, is shown without a first look.
"""

from __future__ import annotations

import streamlit as st

from app.web import answers, link
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer

GPUS = ("H100-80GB-SXM", "B200-180GB")
NOTE = (
    f"A first look at {' and '.join(GPUS)}: every other accelerator is being searched, and the "
    "answer may change."
)
KEY = "first_look"  # of the note's container, so that tests see that more is to come
WAITS = "first_look_waits"  # the question that is still being searched
WAIT_S = 0.2  # an answer that arrives within this needs no first look
RANKED_S = 1.0  # where only the ranking is new: to draw the page twice takes longer


def narrowed(scenario: Scenario) -> Scenario:
    """The scenario, restricted to the usual accelerators."""
    return scenario.model_copy(update={"gpu": GPUS})


def of(scenario: Scenario) -> Answer | None:
    """The answer for the usual accelerators, if the whole answer takes a while; else None.

    Also None if it has no plan, or lacks one that the scenario selects or pins.
    """
    if scenario.gpu:
        return None
    try:
        key = answers.key_of(scenario)
        answers.ask(key)
        is_ranking = answers.num_searched(scenario) > len(GPUS)
        if answers.is_known(key, within_s=RANKED_S if is_ranking else WAIT_S):
            return None
        some = answers.answer_of(narrowed(scenario))
    except RuncastError:
        return None  # the whole answer reports the error
    named = {scenario.plan, *scenario.pinned} - {""}
    return some if some.plans and named <= {p.id for p in some.plans} else None


def begin() -> None:
    """Forget what an earlier run, ended by an edit, was waiting for."""
    answers.begin()
    st.session_state.pop(WAITS, None)


def draw(key: answers.Key) -> None:
    """Draw the note that the whole answer to a question is still to come."""
    st.session_state[WAITS] = key
    with st.container(key=KEY):
        st.info(NOTE)


def is_awaited() -> bool:
    """Whether this run will wait for a search once everything is drawn."""
    return WAITS in st.session_state


def wait() -> None:
    """Rerun the page when the awaited search, if any, has ended. Call it once everything is drawn:
    every widget stays usable meanwhile, and an edit ends this run but not the search.

    A fragment that polls would also work, but with each poll the browser sends its widgets'
    values, which may be older than an answer that is still on its way.
    """
    key: answers.Key | None = st.session_state.pop(WAITS, None)
    if key is None:
        return
    answers.wait(key)
    link.keep()  # the next run adds no step to the browser's history
    st.rerun(scope="app")
