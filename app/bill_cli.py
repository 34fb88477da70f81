"""`runcast bill`: everything that the best plan costs, line by line."""

from __future__ import annotations

import typer

from app.cli_options import AsJson, Config, File, Given, Link, Model, print_json, takes_fields


@takes_fields
def bill(
    given: Given,
    model: Model = None,
    config: Config = None,
    link: Link = None,
    scenario: File = None,
    as_json: AsJson = False,
) -> None:
    """List everything that a plan costs, with energy and carbon.

    Each line has a lower, an expected and an upper figure. The plan is the best one, or the one
    that the link names.
    """
    from app.bill import asked_plan, bill_of
    from app.cli_values import Opened, plan_scenario
    from app.estimate import answer, resolve_strict
    from app.risk_inputs import given_numbers

    asked, notes = plan_scenario(
        given, Opened(model=model, config=config, link=link, file=scenario)
    )
    asked = resolve_strict(asked)
    given_numbers(asked)  # a mistake among them is said before the search
    for note in notes:
        typer.echo(note, err=True)
    result = bill_of(asked, asked_plan(asked, answer(asked, top=1)))
    if as_json:
        from app.bill_json import bill_json

        print_json(bill_json(asked, result))
    else:
        from app.bill_terminal import print_bill

        print_bill(asked, result)
