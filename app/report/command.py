"""`runcast report`: a plan as Markdown, HTML and PDF."""

from __future__ import annotations

from typing import Annotated

import typer

from app.command.given import Given
from app.command.options import Text, takes_fields, text_option
from app.document.echo import echo


@takes_fields
def report(
    given: Given,
    to: Annotated[Text, text_option("--to", "A,B", "md, html, pdf; all if left out.")] = None,
    out: Annotated[Text, text_option("--out", "DIR", "Write the files there.")] = None,
    name: Annotated[
        Text, text_option("--name", "TEXT", "What to call it, under its title.")
    ] = None,
    date: Annotated[
        Text, text_option("--date", "YYYY-MM-DD", "Of the report; SOURCE_DATE_EPOCH, or today.")
    ] = None,
    address: Annotated[
        Text, text_option("--address", "URL", "Of your page, so that the link can be clicked.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write a plan as a report: Markdown, HTML, PDF."""
    from app.report import files

    wanted = files.wanted(to=to, out=out, date=date, address=address)
    found, notes = files.report_of_options(given, wanted, name=name or "")
    for note in notes:
        echo(note, err=True)
    if wanted.folder is None:
        echo(files.single(found, wanted), nl=False)
    else:
        echo("\n".join(files.write(found, wanted, force=force)))
