"""`runcast scenarios`: list, save, show, rename and delete saved scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, takes_fields, text_option
from app.document.echo import echo

if TYPE_CHECKING:
    from pricing.store.saved import SavedScenario

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
        echo("Nothing is saved: `runcast scenarios save NAME` or the page saves one.")
    elif not found:
        echo(f"None of {len(every)} has that in its name or model.")
    for one in found:
        echo(terminal_line(one))


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
    from app.saved import saved, words

    asked, notes = plan_scenario(given)
    for note in notes:
        echo(note, err=True)
    asked = resolve_strict(asked)
    kept = saved.keep(asked, owner=owner or LOCAL, name=name, replace=replace)
    _print(kept, words.saved_sentence(kept), as_json)


@scenarios.command()
def show(name: Name, owner: OwnerOption = None, as_json: AsJson = False) -> None:
    """One scenario: its link, its short link, its prices."""
    from app.saved import saved, words

    found = saved.named(name, owner=owner or LOCAL)
    _print(found, "\n".join(words.lines(found)), as_json)


@scenarios.command()
def rename(
    name: Name,
    new_name: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    owner: OwnerOption = None,
    as_json: AsJson = False,
) -> None:
    """Give a scenario another name; its short link stays."""
    from app.saved import saved, words

    found = saved.named(name, owner=owner or LOCAL)
    kept = saved.rename(found.name, owner=found.owner, to=new_name)
    _print(kept, words.saved_sentence(kept), as_json)


@scenarios.command()
def delete(name: Name, owner: OwnerOption = None, as_json: AsJson = False) -> None:
    """Delete a scenario; its short link opens nothing afterwards."""
    from app.saved import saved, words

    gone = saved.delete(name, owner=owner or LOCAL)
    _print(gone, words.deleted_sentence(gone), as_json)


def _print(one: SavedScenario, text: str, as_json: bool) -> None:
    from app.saved.as_json import scenario_json

    if as_json:
        print_json(scenario_json(one))
    else:
        echo(text)
