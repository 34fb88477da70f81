"""`runcast risk`: when the best plan ends and what it costs if machines fail."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from app.cli_options import Given, takes_fields
from app.risk_inputs import OPTIONS

Text = str | None


def _option(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False)


def _takes_numbers(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter `numbers` is every option of the table of risk inputs."""
    own = inspect.signature(command).parameters.values()
    added = [
        inspect.Parameter(
            o.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[Text, _option(o.option, o.metavar, o.help)],
        )
        for o in OPTIONS
    ]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        command(numbers={o.name: values.pop(o.name) for o in OPTIONS}, **values)

    kept = [p for p in own if p.name != "numbers"]
    called.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in (*kept, *added)}
    return called


@_takes_numbers
@takes_fields
def risk(
    given: Given,
    numbers: Mapping[str, Text],
    model: Annotated[Text, _option("--model", "ID", "A preset: see `runcast models`.")] = None,
    config: Annotated[
        Text, _option("--config", "FILE", "A Hugging Face config.json instead.")
    ] = None,
    link: Annotated[
        Text, _option("--link", "QUERY", "Reopen a link; other options override it.")
    ] = None,
    scenario: Annotated[
        Text, _option("--scenario", "FILE", "Open a scenario file (YAML); options override it.")
    ] = None,
    asynchronous: Annotated[
        bool,
        typer.Option(
            "--asynchronous", help="Checkpoints stop training only to copy the states to the host."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
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

    typed = given_numbers(numbers)
    if asynchronous and "checkpoint_s" in typed:
        raise ScenarioError(
            "--asynchronous works out how long a checkpoint stops training: leave "
            "--checkpoint-seconds out, or give --upload-seconds beside it instead."
        )
    asked, notes = plan_scenario(
        given, Opened(model=model, config=config, link=link, file=scenario)
    )
    asked = resolve_strict(asked)
    for note in notes:
        typer.echo(note, err=True)
    found = answer(asked, top=1)
    if not found.plans:
        raise ScenarioError(answer_sentence(asked, found))
    result = risk_of(asked, found.plans[0], typed, asynchronous=asynchronous)
    if as_json:
        import orjson

        from app.risk_json import risk_json

        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        typer.echo(orjson.dumps(risk_json(asked, result), option=options), nl=False)
    else:
        from app.risk_terminal import print_risk

        print_risk(asked, result)
