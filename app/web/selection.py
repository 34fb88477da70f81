"""Which plan a page is about: the one that the link names, or the recommended one."""

from __future__ import annotations

from app.web import link
from core.errors import shown
from core.scenario import Scenario
from core.search.plan import Answer, Plan


def drop_unknown(answer: Answer) -> None:
    """Deselect and unpin plans that the answer does not have."""
    scenario = link.scenario()
    known = {p.id for p in answer.plans}
    if scenario.plan and scenario.plan not in known:
        named = shown(scenario.plan)
        link.drop(f"The plan {named} of the link is not among the ranked plans.", plan="")
    if gone := sorted({*scenario.pinned} - known):
        names = ", ".join(map(shown, gone))
        link.drop(
            f"Not among the ranked plans any more, so not pinned: {names}.",
            pinned=tuple(p for p in scenario.pinned if p in known),
        )


def chosen(scenario: Scenario, answer: Answer) -> Plan:
    """The plan that the link names, or the recommended one."""
    return answer.chosen(scenario.plan) or answer.plans[0]
