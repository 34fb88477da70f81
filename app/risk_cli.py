"""`runcast risk`: when the best plan ends and what it costs if machines fail."""

from __future__ import annotations

import typer

from app.cli_options import AsJson, Config, File, Given, Link, Model, print_json, takes_fields


@takes_fields
def risk(
    given: Given,
    model: Model = None,
    config: Config = None,
    link: Link = None,
    scenario: File = None,
    as_json: AsJson = False,
) -> None:
    """Say when a plan ends and what it costs if machines fail.

    And to what the time is lost: checkpoints, repeated steps, restarts, waiting.
    """
    from app.cli_values import Opened, plan_scenario
    from app.estimate import answer, resolve_strict
    from app.risk import risk_of
    from app.risk_inputs import given_numbers
    from app.words import answer_sentence
    from core.errors import ScenarioError

    asked, notes = plan_scenario(
        given, Opened(model=model, config=config, link=link, file=scenario)
    )
    asked = resolve_strict(asked)
    given_numbers(asked)  # a mistake among them is said before the search
    for note in notes:
        typer.echo(note, err=True)
    found = answer(asked, top=1)
    if not found.plans:
        raise ScenarioError(answer_sentence(asked, found))
    result = risk_of(asked, found.plans[0])
    if as_json:
        from app.risk_json import risk_json

        print_json(risk_json(asked, result))
    else:
        from app.risk_terminal import print_risk

        print_risk(asked, result)
