"""`runcast calibrations`: results that were measured, added from a file, listed, shown, removed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.command.options import AsJson, Link, Text, print_json, text_option
from app.document.echo import echo
from core.errors import ScenarioError

if TYPE_CHECKING:
    from app.forecast.calibrations import Calibration
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
    from app.calibration import document
    from app.calibration.added import add as add_result
    from app.calibration.added import read_file

    added = add_result(read_file(Path(file)), note=note or "", typed=_typed(link))
    _print(as_json, document.added_json, document.added_blocks, added)


@calibrations.command(name="list")
def list_results(as_json: AsJson = False) -> None:
    """The results that are here, the newest first."""
    from app.calibration import document

    _print(as_json, document.listed_json, document.listed_blocks, *_listed())


@calibrations.command()
def show(id_: Id, link: Link = None, as_json: AsJson = False) -> None:
    """Constants, held-out step, links, flags and provenance of one result.

    A result that names no accelerator is held against the figures of a custom one, which the
    --link of a scenario has.
    """
    from app.calibration import document
    from app.calibration.added import has_figures
    from app.forecast.calibrations import has, load, of_id
    from app.forecast.machines import CUSTOM, CUSTOM_FIGURES

    if not has(id_):
        load(id_)  # its error lists the known results
    rows, stale, _ = _listed()
    calibration, typed = next(c for c in rows if c.id == id_), _typed(link)
    if calibration.accelerator == CUSTOM and not has_figures(typed):
        raise ScenarioError(
            f"The calibration {id_} names no accelerator: --link gives the figures to hold it "
            f"against, {', '.join(CUSTOM_FIGURES)}."
        )
    if calibration.problem:
        raise ScenarioError(calibration.problem)
    fitted = replace(of_id(id_, typed), note=calibration.note)
    _print(as_json, document.shown_json, document.shown_blocks, fitted, stale.get(id_, ()))


@calibrations.command()
def remove(id_: Id) -> None:
    """Delete a result; forecasts are then as if it had never been there."""
    from app.calibration.added import remove as remove_result

    sentences = remove_result(id_)
    echo(f"Removed the calibration {id_}.")
    for sentence in sentences:
        echo(sentence, err=True)


def _print(as_json: bool, json: Callable[..., Any], blocks: Callable[..., Any], *rows: Any) -> None:
    from app.document.terminal import print_document

    print_json(json(*rows)) if as_json else print_document(blocks(*rows))


def _listed() -> tuple[list[Calibration], dict[str, tuple[str, ...]], str]:
    """All results, why some are stale, and why the index cannot be read ('' if it can)."""
    from app.calibration.added import listed
    from app.calibration.document import staleness

    rows, sentence = listed()
    today = dt.datetime.now(dt.UTC).date()
    return rows, {c.id: staleness(c, rows, today) for c in rows}, sentence


def _typed(link: str | None) -> Scenario:
    """The figures of a custom accelerator in a link."""
    from app.calibration.added import NOTHING_TYPED
    from app.command.values import link_values, parsed
    from app.forecast.calibrations import typed_of

    if link is None:
        return NOTHING_TYPED
    values, notes = link_values(link)
    for note in notes:
        echo(note, err=True)
    return typed_of(parsed(values, written_as={}))
