"""`runcast calibrations`: results that were measured, added from a file, listed, shown, removed."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.command.options import AsJson, Link, Text, print_json, text_option
from app.document.echo import echo
from core.errors import ScenarioError

if TYPE_CHECKING:
    from app.forecast.calibration_files import Kept
    from core.scenario import Scenario

calibrations = typer.Typer(
    name="calibrations",
    help="Measured machines: results of `calibrate`, kept here.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Id = Annotated[str, typer.Argument(metavar="ID", help="As `runcast calibrations list` prints it.")]
Note = Annotated[Text, text_option("--note", "TEXT", "What to remember of it.")]


@calibrations.command()
def add(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `calibrate` or `import --out` wrote.")
    ],
    note: Note = None,
    link: Link = None,
    as_json: AsJson = False,
) -> None:
    """Check a result and keep it."""
    from app.calibration.added import add as add_result
    from app.calibration.added import read_file
    from app.calibration.as_json import added_json
    from app.calibration.sections import added_blocks
    from app.document.terminal import print_document

    typed = _typed(link)
    added = add_result(read_file(Path(file)), note=note or "", typed=typed)
    print_json(added_json(added)) if as_json else print_document(added_blocks(added))


@calibrations.command(name="list")
def list_results(as_json: AsJson = False) -> None:
    """The results that are here, the newest first."""
    from app.calibration.as_json import listed_json
    from app.calibration.sections import listed_blocks
    from app.document.terminal import print_document

    found, stale, sentence = _listed()
    if as_json:
        print_json(listed_json(found, stale, sentence))
    else:
        print_document(listed_blocks(found, stale, sentence))


@calibrations.command()
def show(id_: Id, link: Link = None, as_json: AsJson = False) -> None:
    """Constants, held-out step, links, flags and provenance of one result.

    A result that names no accelerator is held against the figures of a custom one, which the
    --link of a scenario has.
    """
    from app.calibration.added import has_figures, learned
    from app.calibration.as_json import shown_json
    from app.calibration.sections import shown_blocks
    from app.document.terminal import print_document
    from app.forecast import calibration_files
    from app.forecast.machines import CUSTOM, CUSTOM_FIGURES

    if not calibration_files.has(id_):
        calibration_files.load(id_)  # its error lists the known results
    found, stale, _ = _listed()
    kept, typed = next(k for k in found if k.id == id_), _typed(link)
    if kept.accelerator == CUSTOM and not has_figures(typed):
        raise ScenarioError(
            f"The calibration {id_} names no accelerator: --link gives the figures to hold it "
            f"against, {', '.join(CUSTOM_FIGURES)}."
        )
    c = learned(kept, typed)
    if as_json:
        print_json(shown_json(kept, c, stale.get(id_, ())))
    else:
        print_document(shown_blocks(kept, c, stale.get(id_, ())))


@calibrations.command()
def remove(id_: Id) -> None:
    """Delete a result; forecasts are then as if it had never been there."""
    from app.calibration.added import remove as remove_result

    said = remove_result(id_)
    echo(f"Removed the calibration {id_}.")
    for sentence in said:
        echo(sentence, err=True)


def _listed() -> tuple[list[Kept], dict[str, tuple[str, ...]], str]:
    """All results, why some are stale, and why the index cannot be read ('' if it can)."""
    from app.calibration.added import listed
    from app.calibration.words import staleness

    found, sentence = listed()
    today = dt.datetime.now(dt.UTC).date()
    return found, {k.id: staleness(k, found, today) for k in found}, sentence


def _typed(link: str | None) -> Scenario:
    """The figures of a custom accelerator in a link."""
    from app.calibration.added import NOTHING_TYPED, typed_of
    from app.command.values import link_values, parsed

    if link is None:
        return NOTHING_TYPED
    values, notes = link_values(link)
    for note in notes:
        echo(note, err=True)
    return typed_of(parsed(values, written_as={}))
