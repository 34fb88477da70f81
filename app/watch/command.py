"""`runcast watch`: follow the log of a run and hold it against its forecast."""

from __future__ import annotations

from typing import Annotated

import typer

from app.command.given import Given
from app.command.options import AsJson, Text, takes_fields, text_option


@takes_fields
def watch(
    given: Given,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The log of a run, or a folder of its logs.")
    ],
    layout: Annotated[
        Text, text_option("--layout", "KEY=N,..", "tp=8,pp=4,sharding=zero1,...: what is run.")
    ] = None,
    report: Annotated[
        Text,
        text_option("--report", "FILE", "A report or a launch file: its plan is held against."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Read what is there, and end.")] = False,
    replay: Annotated[
        Text,
        text_option("--replay", "SPEED", "A finished log at 60, 3600, .. times its speed; max."),
    ] = None,
    textfile: Annotated[
        Text, text_option("--prometheus-textfile", "FILE", "Write metrics for the node exporter.")
    ] = None,
    on_alert: Annotated[
        Text, text_option("--on-alert", "COMMAND", "Run it at each alert, with JSON on its input.")
    ] = None,
    every: Annotated[Text, text_option("--every", "SECONDS", "Between two states (60).")] = None,
    beside: Annotated[
        Text, text_option("--beside", "PATH", "dmon, DCGM, profiler, nccl-tests: they tell causes.")
    ] = None,
    offers: Annotated[
        bool, typer.Option("--offers", help="Stay or move: what is left on the offers of today.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Follow a run and hold it against its forecast.

    Speed, goodput, end, cost and chance on time as they narrow; alerts with their causes. Ends with
    the run: status 0, or 3 after alerts; 4 if no step was logged.
    """
    from pathlib import Path

    from app.watch.follow import Options, command_words, followed, positive

    options = Options(
        once=once,
        replay=positive("--replay", replay),
        textfile=None if textfile is None else Path(textfile),
        on_alert=command_words(on_alert),
        every_s=positive("--every", every) or 60.0,
        beside=None if beside is None else Path(beside),
        offers=offers,
        as_json=as_json,
    )
    raise typer.Exit(followed(given, source, layout=layout, report=report, options=options))
