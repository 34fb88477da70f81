"""`runcast recompute`: computes the plans of a JSON file again from the inputs in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.command.options import AsJson, print_json

DIFFERENT = 1  # exit status: a number differs
MOST_SHOWN = 10  # differing plans, and numbers per plan


def recompute(
    file: Annotated[str, typer.Argument(metavar="PLAN.json", help="Of `runcast plan --json`.")],
    as_json: AsJson = False,
) -> None:
    """Compute the plans of a JSON file again, offline.

    From nothing but the file. Exit status 0: the same; 1: something differs.
    """
    from app.recompute.file import read_plan_file
    from app.recompute.recompute import recomputed, recomputed_json

    found = recomputed(read_plan_file(Path(file)))
    if as_json:
        print_json(recomputed_json(found))
    else:
        from app.document.terminal import console, print_wrapped
        from app.recompute.words import sentences

        for sentence in sentences(found, most=MOST_SHOWN):
            print_wrapped(console(), sentence, indent="  ", first="")
    if not found.is_same:
        raise typer.Exit(DIFFERENT)
