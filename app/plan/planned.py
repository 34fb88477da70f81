"""The scenario and the plan that a command is about."""

from __future__ import annotations

from app.command.given import Given
from app.command.values import plan_scenario
from app.document.echo import echo
from app.forecast.answer import answer
from app.forecast.failure_inputs import given_numbers
from app.forecast.resolve import resolve_strict
from app.plan.words import answer_sentence
from core.errors import ScenarioError, shown
from core.scenario import Scenario
from core.search.plan import Answer, Plan


def planned(given: Given) -> tuple[Scenario, Plan]:
    """The scenario, and the plan that it names or the best one. Notes go to standard error.
    ScenarioError for contradictory inputs, before the search if possible."""
    asked, notes = plan_scenario(given)
    asked = resolve_strict(asked)
    given_numbers(asked)  # reports mistakes before the search
    for note in notes:
        echo(note, err=True)
    return asked, asked_plan(asked, answer(asked, top=1))


def asked_plan(scenario: Scenario, found: Answer) -> Plan:
    """The plan that the scenario names, else the best one; ScenarioError if there is none."""
    plan = found.chosen(scenario.plan)
    if plan is None:
        raise ScenarioError(answer_sentence(scenario, found))
    if scenario.plan not in ("", plan.id):
        raise ScenarioError(
            f"The plan {shown(scenario.plan)} is not among the ranked plans: `runcast plan --json` "
            "names them."
        )
    return plan
