"""What the Plan page shows while the whole catalogue is searched: the usual accelerators.

A search of every accelerator takes seconds, a search of two a fraction of a second. The page shows
the two at once, says so, stays usable, and shows the whole answer as soon as it is there. An answer
that is cached, or arrives soon, is shown without a first look.
"""

from __future__ import annotations

from app.web import answers
from core.errors import RuncastError
from core.scenario import Scenario
from core.search.plan import Answer

GPUS = ("H100-80GB-SXM", "B200-180GB")
NOTE = (
    f"A first look at {' and '.join(GPUS)}: every other accelerator is being searched, and the "
    "answer may change."
)
WAIT_S = 0.2  # an answer that arrives within this needs no first look


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
        if answers.is_known(answers.key_of(scenario), within_s=WAIT_S):
            return None
        some = answers.answer_of(narrowed(scenario))
    except RuncastError:
        return None  # the whole answer reports the error
    named = {scenario.plan, *scenario.pinned} - {""}
    return some if some.plans and named <= {p.id for p in some.plans} else None
