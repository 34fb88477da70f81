"""Answers on a terminal: sentences and ranked tables, at most as wide as the window.

Where there is no window, tables are as wide as what they hold.
"""

from __future__ import annotations

import os
import sys
import textwrap
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

WIDTH = 100  # where no window says otherwise: a pipe, a file
WIDEST = 10_000  # of a table there


class _Unbounded(Console):
    """A pipe or a file: sentences end at WIDTH, a table is as wide as its cells."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """As every console prints, without cutting or folding a cell."""
        tables = [o for o in objects if isinstance(o, Table)]
        wide = self.options.update(width=WIDEST)
        widths = [Measurement.get(self, wide, table).maximum for table in tables]
        self.width = max(WIDTH, *widths, 0)
        try:
            super().print(*objects, **settings)
        finally:
            self.width = WIDTH


def console() -> Console:
    """Standard output. No markup: names come from users and from sellers."""
    unknown = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    kind = _Unbounded if unknown else Console
    return kind(
        width=WIDTH if unknown else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )


def print_wrapped(out: Console, text: str, *, indent: str = "", first: str | None = None) -> None:
    """Lines that end at a word and start at `indent`, without blanks at their ends. A word that
    is longer than a line, as a layout to be copied may be, stays whole."""
    start = indent if first is None else first
    lines = textwrap.fill(
        text,
        out.width,
        initial_indent=start,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    out.print(lines, soft_wrap=True)


def figures_table(*heads: str) -> Table:
    """A table of a name and its figures, which stand to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for n, head in enumerate(heads):
        table.add_column(head, justify="right" if n else "left", no_wrap=True)
    return table


def cut(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
