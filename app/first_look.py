"""What the Plan page shows while the whole catalogue is searched: the usual accelerators.

A search of every accelerator takes about a second, one of two of them a fraction of it. The page
shows these at once, says so, and replaces them by the whole answer. An answer that somebody here
has seen already is shown as it is.
"""

from __future__ import annotations

import streamlit as st

from core.scenario import Scenario

GPUS = ("H100-80GB-SXM", "B200-180GB")
MOST_KNOWN = 4096
NOTE = (
    f"A first look at {' and '.join(GPUS)}: every other accelerator is being searched, and the "
    "answer may change."
)

Key = tuple[object, ...]


@st.cache_resource(show_spinner=False)
def _known() -> set[Key]:
    """Questions whose whole answer somebody has seen here."""
    return set()


def is_due(scenario: Scenario, key: Key) -> bool:
    """Whether a first look is worth it: every accelerator is asked for, no plan is selected that
    may be of another one, and nobody has asked the same before."""
    return not scenario.gpu and not scenario.plan and key not in _known()


def narrowed(scenario: Scenario) -> Scenario:
    """The same question of the usual accelerators."""
    return scenario.model_copy(update={"gpu": GPUS})


def remember(key: Key) -> None:
    """The whole answer is there: the next one who asks gets it at once."""
    known = _known()
    if len(known) >= MOST_KNOWN:
        known.clear()
    known.add(key)
