"""Which plan a page is about: the one that the link names, or the recommended one."""

from __future__ import annotations

from core.errors import shown
from core.scenario import Scenario
from core.search.plan import Answer, Plan


def is_listed(scenario: Scenario, answer: Answer) -> bool:
    """Whether the answer has the plan that the scenario selects, if it selects one."""
    return not scenario.plan or any(p.id == scenario.plan for p in answer.plans)


def unknown_pins(scenario: Scenario, answer: Answer) -> tuple[str, ...]:
    """The pinned plans that the answer does not have."""
    return tuple(sorted({*scenario.pinned} - {p.id for p in answer.plans}))


def unknown_pins_sentence(gone: tuple[str, ...]) -> str:
    """The note that pinned plans of a link no longer exist."""
    return f"Not among the ranked plans any more, so not pinned: {', '.join(map(shown, gone))}."


def unknown_plan_sentence(scenario: Scenario) -> str:
    """The note that a link's plan no longer exists."""
    return f"The plan {shown(scenario.plan)} of the link is not among the ranked plans."


def chosen(scenario: Scenario, answer: Answer) -> Plan:
    """The plan that the link names, or the recommended one."""
    return answer.chosen(scenario.plan) or answer.plans[0]
