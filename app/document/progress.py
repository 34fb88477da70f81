"""The bar of a command that waits: on a terminal's standard error, so that output stays output."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def terminal_bar(*, quiet: bool) -> Progress:
    """A bar that has not started: what is done, of how many, for how long. Where there is no
    terminal, or it is to be quiet, it is disabled and draws nothing."""
    return Progress(
        TextColumn("{task.description}", markup=False),  # names of foreign sources and machines
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True, markup=False, highlight=False, emoji=False),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
