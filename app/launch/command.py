"""`runcast export`: the files that launch a plan, for the user's own stack."""

from __future__ import annotations

from typing import Annotated

import typer

from app.command.given import Given
from app.command.options import AsJson, Text, print_json, takes_fields, text_option
from app.document.echo import echo


@takes_fields
def export(
    given: Given,
    to: Annotated[
        Text, text_option("--to", "A,B", "Kinds of files: see --list; of its stack if left out.")
    ] = None,
    out: Annotated[
        Text, text_option("--out", "DIR", "Write them there, not to the screen.")
    ] = None,
    name: Annotated[
        Text, text_option("--name", "NAME", "Of the job; from the model if left out.")
    ] = None,
    command: Annotated[
        Text, text_option("--command", "COMMAND", 'What runs: "python train.py --x 1".')
    ] = None,
    env: Annotated[
        list[str] | None, text_option("--env", "NAME=VALUE", "A variable of the job; repeatable.")
    ] = None,
    option: Annotated[
        list[str] | None,
        text_option("--option", "KEY=VALUE", "Of a target: partition=gpu; see --list; repeatable."),
    ] = None,
    rank: Annotated[Text, text_option("--rank", "N", "Of the plan of this rank (1).")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the kinds of files.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the files that launch a plan."""
    from app.launch import export

    if listed:
        print_json(export.list_json()) if as_json else echo(export.list_text())
        return
    wanted = export.names_of(to)
    options = export.options_of(command=command, env=env or [], pairs=option or [])
    made, notes = export.made(given, rank=rank, name=name, targets=wanted, options=options)
    for note in notes:
        echo(note, err=True)
    if out is not None:
        paths = export.write(made, out, force=force)
        if as_json:
            print_json(export.export_json(made, written=paths))
        else:
            echo("\n".join(paths))
    elif as_json:
        print_json(export.export_json(made))
    else:
        echo(export.single(made), nl=False)
