"""`runcast diff`: what a change of a scenario file costs, with guardrails for pull requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.command.options import AsJson, Text, print_json, text_option
from app.document.echo import echo

if TYPE_CHECKING:
    from core.scenario import Scenario

BROKEN = 1  # exit status: a guardrail
MISSING = "-"


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A scenario file; - if it is new.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="A scenario file; - if it goes.")],
    name: Annotated[
        Text, text_option("--name", "NAME", "What to call it; NEW if left out.")
    ] = None,
    fail_above_usd: Annotated[
        Text, text_option("--fail-above-usd", "U", "Status 1 if NEW is expected to cost more.")
    ] = None,
    fail_if_late: Annotated[
        bool, typer.Option("--fail-if-late", help="Status 1 if NEW misses its deadline.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a comment.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the forecasts of two scenario files.

    Exit status 0; 1: NEW breaks a guardrail.
    """
    from app.forecast.price_book import today
    from app.options.change import blocks, change_json, change_of
    from core.errors import ScenarioError

    if markdown and as_json:
        raise ScenarioError("Give --markdown or --json, not both.")
    change = change_of(
        name or (old if new == MISSING else new), _scenario(old), _scenario(new),
        fail_above_usd=_usd(fail_above_usd), fail_if_late=fail_if_late, today=today(),
    )  # fmt: skip
    if as_json:
        print_json(change_json(change))
    elif markdown:
        from app.document.markdown import fragment

        echo(fragment(blocks(change, today())))
    else:
        from app.document.terminal import print_document

        print_document(blocks(change, today()))
    if change.broken:
        raise typer.Exit(BROKEN)


def _scenario(path: str) -> Scenario | None:
    """The scenario of a file, None for '-'. A mistake names the file."""
    from app.command.given import Given
    from app.command.values import plan_scenario
    from app.forecast.resolve import resolve_strict
    from core.errors import RuncastError, ScenarioError, shown

    if path == MISSING:
        return None
    try:
        scenario, notes = plan_scenario(Given(options={}, file=path))
        for note in notes:
            echo(note, err=True)
        return resolve_strict(scenario)
    except RuncastError as e:
        raise ScenarioError(f"{shown(path)}: {e}") from None


def _usd(text: str | None) -> float | None:
    """The bound as a number, read as a scenario reads its budget."""
    from app.command.values import parsed

    if text is None:
        return None
    return parsed({"budget_usd": text}, written_as={"budget_usd": "--fail-above-usd "}).budget_usd
