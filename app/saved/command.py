"""`runcast scenarios`: list, save, show, rename and delete saved scenarios."""

from __future__ import annotations

from typing import Annotated

import typer

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, takes_fields, text_option

scenarios = typer.Typer(
    name="scenarios",
    help="Scenarios under names, as the page lists them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As `list` prints it.")]
OwnerOption = Annotated[
    Text, text_option("--owner", "ID", "Whose; 'local' if left out: docs/teams.md.")
]
LOCAL = "local"  # app/web/owner.py; importing it would load Streamlit for every --help


@scenarios.command(name="list")
def list_saved(
    search: Annotated[Text, text_option("--search", "WORDS", "All in name or model.")] = None,
    owner: OwnerOption = None,
    as_json: AsJson = False,
) -> None:
    """What is saved, the last changed first."""
    from app.saved import saved
    from app.saved.as_json import list_json
    from app.saved.words import terminal_line

    every = saved.listed(owner=owner or LOCAL)
    found = saved.matching(every, search or "")
    if as_json:
        print_json(list_json(found, owner=owner or LOCAL))
        return
    if not every:
        typer.echo("Nothing is saved: `runcast scenarios save NAME` or the page saves one.")
    elif not found:
        typer.echo(f"None of {len(every)} has that in its name or model.")
    for one in found:
        typer.echo(terminal_line(one))


@scenarios.command()
@takes_fields
def save(
    name: Name,
    given: Given,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace one of that name, which keeps its id.")
    ] = False,
    owner: OwnerOption = None,
    as_json: AsJson = False,
) -> None:
    """Keep a scenario under a name."""
    from app.command.values import plan_scenario
    from app.forecast.resolve import resolve_strict
    from app.saved import saved
    from app.saved.as_json import scenario_json
    from app.saved.words import saved_sentence

    asked, notes = plan_scenario(given)
    for note in notes:
        typer.echo(note, err=True)
    asked = resolve_strict(asked)
    kept = saved.keep(asked, owner=owner or LOCAL, name=name, replace=replace)
    if as_json:
        print_json(scenario_json(kept))
    else:
        typer.echo(saved_sentence(kept))


@scenarios.command()
def show(name: Name, owner: OwnerOption = None, as_json: AsJson = False) -> None:
    """One scenario: its link, its short link, its prices."""
    from app.saved import saved
    from app.saved.as_json import scenario_json
    from app.saved.words import lines

    found = saved.named(name, owner=owner or LOCAL)
    if as_json:
        print_json(scenario_json(found))
    else:
        typer.echo("\n".join(lines(found)))


@scenarios.command()
def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    owner: OwnerOption = None,
    as_json: AsJson = False,
) -> None:
    """Give a scenario another name; its short link stays."""
    from app.saved import saved
    from app.saved.as_json import scenario_json
    from app.saved.words import saved_sentence

    found = saved.named(name, owner=owner or LOCAL)
    kept = saved.rename(found.name, owner=found.owner, to=new_name)
    if as_json:
        print_json(scenario_json(kept))
    else:
        typer.echo(saved_sentence(kept))


@scenarios.command()
def delete(name: Name, owner: OwnerOption = None, as_json: AsJson = False) -> None:
    """Delete a scenario; its short link opens nothing afterwards."""
    from app.saved import saved
    from app.saved.as_json import scenario_json
    from app.saved.words import deleted_sentence

    gone = saved.delete(name, owner=owner or LOCAL)
    if as_json:
        print_json(scenario_json(gone))
    else:
        typer.echo(deleted_sentence(gone))
