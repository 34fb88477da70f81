"""`runcast explain`: why the best plan or a named layout is as it is, and how two compare."""

from __future__ import annotations

from typing import Annotated

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, text_option
from app.document.echo import echo

TOP = 50  # plans among which the one to compare with is searched


def explain(
    given: Given,
    layout: Annotated[
        Text, text_option("--layout", "KEY=N,..", "Explain this layout, not the best plan's.")
    ] = None,
    against: Annotated[
        Text, text_option("--against", "KEY=N,..", "Hold this layout against it.")
    ] = None,
    rank: Annotated[Text, text_option("--rank", "N", "Explain the plan of this rank (1).")] = None,
    as_json: AsJson = False,
) -> None:
    """Say why a plan is the best, or why not another layout.

    With what would make it faster, and which inputs move it most.
    """
    from app.command.values import plan_scenario, plans_to_show
    from app.explain.question import explanation
    from app.forecast.answer import answer
    from app.forecast.resolve import resolve_strict

    wanted = plans_to_show(rank, 1, option="--rank")
    asked, notes = plan_scenario(given)
    asked = resolve_strict(asked)
    for note in notes:
        echo(note, err=True)
    found = explanation(
        asked, answer(asked, top=max(TOP, wanted)), rank=wanted, layout=layout, against=against
    )
    if as_json:
        from app.explain.as_json import explanation_json

        print_json(explanation_json(found))
    else:
        from app.document.terminal import print_document
        from app.explain.document import blocks

        print_document(blocks(found))
