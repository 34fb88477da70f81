"""`runcast buy`: on demand, spot, reserved, a block or owned, side by side for one plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli_options import (
    AsJson,
    Config,
    File,
    Given,
    Link,
    Model,
    Text,
    print_json,
    takes_fields,
    text_option,
)


@takes_fields
def buy(
    given: Given,
    model: Model = None,
    config: Config = None,
    link: Link = None,
    scenario: File = None,
    trace: Annotated[
        Text, text_option("--trace", "FILE", "Spot capacity up and down, CSV or JSON: replayed.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the ways to buy a plan's machines.

    On demand, spot under several policies, reserved, a capacity block, owned: cost, finish, and
    the chance to miss a deadline, with failures and preemptions.
    """
    from app.cli_values import Opened, plan_scenario
    from app.estimate import answer, resolve_strict
    from app.purchase import purchases_of
    from app.risk_inputs import given_numbers
    from app.trace_file import read_trace_file
    from app.words import answer_sentence
    from core.errors import ScenarioError, shown

    asked, notes = plan_scenario(
        given, Opened(model=model, config=config, link=link, file=scenario)
    )
    asked = resolve_strict(asked)
    given_numbers(asked)  # a mistake among them is said before the search
    capacity = None if trace is None else read_trace_file(Path(trace))
    for note in notes:
        typer.echo(note, err=True)
    found = answer(asked, top=1)
    if not found.plans:
        raise ScenarioError(answer_sentence(asked, found))
    chosen = next((p for p in found.plans if p.id == asked.plan), found.plans[0])
    if asked.plan and chosen.id != asked.plan:
        typer.echo(f"The plan {shown(asked.plan)} is not among the ranked plans.", err=True)
    result = purchases_of(asked, chosen, capacity)
    if as_json:
        from app.purchase_json import purchases_json

        print_json(purchases_json(asked, result))
    else:
        from app.purchase_terminal import print_purchases

        print_purchases(asked, result)
