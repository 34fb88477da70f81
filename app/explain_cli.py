"""`runcast explain`: why the best plan, or a named layout, is as it is; one against another."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from app.cli_options import Given

TOP = 50  # plans among which the other one to hold against is looked for

Text = str | None


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False)


def explain(
    given: Given,
    model: Annotated[Text, _option("--model", "ID", "A preset: see `runcast models`.")] = None,
    config: Annotated[
        Text, _option("--config", "FILE", "A Hugging Face config.json instead.")
    ] = None,
    layout: Annotated[
        Text, _option("--layout", "KEY=N,..", "Explain this layout, not the best plan's.")
    ] = None,
    against: Annotated[
        Text, _option("--against", "KEY=N,..", "Hold this layout against it.")
    ] = None,
    rank: Annotated[Text, _option("--rank", "N", "Explain the plan of this rank (1).")] = None,
    link: Annotated[
        Text, _option("--link", "QUERY", "Reopen a link; other options override it.")
    ] = None,
    scenario: Annotated[
        Text, _option("--scenario", "FILE", "Open a scenario file (YAML); options override it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Say why a plan is the best, what would make it faster, or why not another layout."""
    from app.cli_values import Opened, plan_scenario
    from app.estimate import answer, resolve_strict
    from app.explanation import explanation

    wanted = _rank(rank)
    asked, notes = plan_scenario(
        given, Opened(model=model, config=config, link=link, file=scenario)
    )
    asked = resolve_strict(asked)
    for note in notes:
        typer.echo(note, err=True)
    found = explanation(
        asked, answer(asked, top=max(TOP, wanted)), rank=wanted, layout=layout, against=against
    )
    if as_json:
        import orjson

        from app.explain_json import explanation_json

        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        typer.echo(orjson.dumps(explanation_json(found), option=options), nl=False)
    else:
        from app.explain_terminal import print_explanation

        print_explanation(found)


def _rank(text: str | None) -> int:
    """The value of `--rank`."""
    from app.cli_values import TOP_MAX
    from core.errors import ScenarioError, shown

    if text is None:
        return 1
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= TOP_MAX):
        raise ScenarioError(f"--rank {shown(text)} is not a whole number from 1 to {TOP_MAX}.")
    return int(text)
