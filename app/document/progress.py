"""Bars of commands that wait: on a terminal's standard error, so that output stays output."""

from __future__ import annotations

import sys

from rich.console import Console as Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from app.document.terminal import PlainConsole


def error_console() -> Console:
    """Standard error. No markup: names come from files and from sellers."""
    return PlainConsole(stderr=True, markup=False, highlight=False, emoji=False)


def terminal_bar(*, quiet: bool) -> Progress:
    """A bar that has not started: done, total and elapsed time. Without a terminal, or with
    `quiet`, it is disabled and draws nothing."""
    return Progress(
        TextColumn("{task.description}", markup=False),  # names of foreign sources and machines
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=error_console(),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )


def cells_bar(console: Console) -> Progress:
    """The bar of a sweep: what is done, of how many, how fast, and how long it still takes."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
