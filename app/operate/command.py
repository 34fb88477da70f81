"""`runcast doctor`: checks this installation and lists what to fix."""

from __future__ import annotations

from typing import Annotated

import typer

from app.command.options import AsJson, print_json
from app.document.echo import echo

BROKEN = 2  # exit status


def doctor(
    ready: Annotated[
        bool, typer.Option("--ready", help="Only whether it can answer: for containers.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say whether this installation is well, and what to do.

    Looks at versions, store, prices, calibrations, settings and tools. Ends with 0 where nothing
    is broken, warnings or not, and with 2 where something is.
    """
    if ready:
        _ready(as_json=as_json)
        return
    from datetime import UTC, datetime

    from app.operate.doctor import blocks, doctor_json, examined, worst

    now = datetime.now(UTC)
    found = examined(now)
    if as_json:
        print_json(doctor_json(found, now))
    else:
        from app.document.terminal import print_document

        print_document(blocks(found))
    raise typer.Exit(BROKEN if worst(found) == "broken" else 0)


def _ready(*, as_json: bool) -> None:
    from app.operate.readiness import checks, ready_json

    found = checks()
    if as_json:
        print_json(ready_json(found))
    else:
        for check in found:
            echo(f"{'ok' if check.ok else 'NOT READY'}  {check.name}: {check.sentence}")
    raise typer.Exit(0 if all(c.ok for c in found) else BROKEN)
