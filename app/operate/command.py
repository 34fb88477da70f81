"""`runcast doctor`: whether this installation is well, and what to do where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from app.command.options import AsJson, print_json

if TYPE_CHECKING:
    from app.operate.finding import Finding

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

    from app.operate.doctor import doctor_json, examined, worst

    now = datetime.now(UTC)
    found = examined(now)
    if as_json:
        print_json(doctor_json(found, now))
    else:
        _print(found)
    raise typer.Exit(BROKEN if worst(found) == "broken" else 0)


def _ready(*, as_json: bool) -> None:
    from app.operate.readiness import checks, ready_json

    found = checks()
    if as_json:
        print_json(ready_json(found))
    else:
        for check in found:
            typer.echo(f"{'ok' if check.ok else 'NOT READY'}  {check.name}: {check.sentence}")
    raise typer.Exit(0 if all(c.ok for c in found) else BROKEN)


def _print(found: Sequence[Finding]) -> None:
    from rich.table import Table

    from app.document.terminal import console, print_wrapped
    from app.operate.doctor import summary

    out = console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("Area", "What", "State", "Found"):
        table.add_column(head, overflow="fold")
    area = ""
    for one in found:
        table.add_row(one.area if one.area != area else "", one.name, one.state, one.value)
        area = one.area
    out.print(table)
    out.print()
    for one in found:
        if one.todo:
            print_wrapped(out, f"{one.state}, {one.name}: {one.todo}")
    print_wrapped(out, summary(found))
