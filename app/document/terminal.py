"""Print blocks on a terminal: sentences, lists and tables, at most as wide as the window.

Without a window, tables are as wide as their content.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable
from typing import Any, Literal

from rich import table as rich_table
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment

from app.document.blocks import Block, Bullets, Copied, Figure, Paragraph, Section
from app.document.table import Table
from hardware.outside.text import plain

WIDTH = 100  # without a window: a pipe, a file
WIDEST = 10_000  # greatest table width without a window
STEP = "  "  # indent of a paragraph below another
WIDE_GAP, NARROW_GAP = 2, 1  # blanks between columns


class PlainConsole(Console):
    """Console that writes no character which would command a terminal, but for its own styles."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of what is printed, each with plain text."""
        for piece in super().render(renderable, options):
            if piece.control or (text := plain(piece.text)) == piece.text:
                yield piece
            else:
                yield Segment(text, piece.style)


class _Unbounded(PlainConsole):
    """Console for a pipe or a file: sentences wrap at WIDTH, a table is as wide as its cells."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print as any console does, without cutting or folding a cell."""
        tables = [o for o in objects if isinstance(o, rich_table.Table)]
        wide = self.options.update(width=WIDEST)
        widths = [Measurement.get(self, wide, table).maximum for table in tables]
        self.width = max(WIDTH, *widths, 0)
        try:
            super().print(*objects, **settings)
        finally:
            self.width = WIDTH


def console() -> Console:
    """Standard output without markup: names come from users and sellers."""
    unknown = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    kind = _Unbounded if unknown else PlainConsole
    return kind(
        width=WIDTH if unknown else None,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )


def print_wrapped(out: Console, text: str, *, indent: str = "", first: str | None = None) -> None:
    """Print lines that break at word ends and are indented by `indent`, without trailing blanks. A
    word longer than a line, such as a layout to copy, is kept whole."""
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


def print_document(blocks: Iterable[Block | Section]) -> None:
    """Print blocks on standard output."""
    print_blocks(console(), blocks)


def print_blocks(out: Console, blocks: Iterable[Block | Section]) -> None:
    """Print paragraphs, lists, tables and sections in order, with a blank line above each table and
    section except the first."""
    for n, block in enumerate(blocks):
        match block:
            case Section(title, within):
                out.print("\n" if n else "", end="")
                print_wrapped(out, title)
                print_blocks(out, within)
            case Paragraph(text, _, level):
                print_wrapped(out, text, indent=STEP * level)
            case Bullets(items, title):
                if title:
                    out.print(f"\n{title}:")
                for item in items:
                    print_wrapped(out, item, indent="   ", first=" - ")
            case Table() | Figure():
                out.print("\n" if n else "", end="")
                print_table(out, block if isinstance(block, Table) else block.numbers)
            case Copied():
                # Never wrapped: a link broken over two lines cannot be copied.
                out.print(f"\n{block.label}: {block.text}", soft_wrap=True)


def print_table(out: Console, table: Table[Any]) -> None:
    """Print a table. In a narrow window its columns first move closer together, then cells that may
    be cut lose their ends, from the last column on, then cells that may wrap do."""
    rows = table.cells()
    heads = [c.short or c.head for c in table.columns]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    fixed = [w for w, c in zip(widths, table.columns, strict=True) if not c.wraps]
    gap = WIDE_GAP if sum(fixed) + WIDE_GAP * len(widths) <= out.width else NARROW_GAP
    drawn = rich_table.Table(
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
        header_style="bold",
        show_header=any(heads),
    )
    for head, column in zip(heads, table.columns, strict=True):
        side: Literal["left", "right"] = "left" if column.is_text else "right"
        drawn.add_column(
            head,
            justify=side,
            no_wrap=not column.wraps,
            overflow="fold" if column.wraps else "ellipsis",  # a cut is always marked
        )
    room = _room(table, widths, out.width - gap * (len(widths) - 1))
    for row in rows:
        drawn.add_row(*(cut(cell, w) for cell, w in zip(row, room, strict=True)))
    out.print(drawn)


def _room(table: Table[Any], widths: list[int], width: int) -> list[int]:
    """The widths, with columns that may be cut narrowed until all fit into `width`."""
    found = list(widths)
    for n, column in reversed(list(enumerate(table.columns))):
        if column.least:
            found[n] = max(min(found[n], column.least), found[n] - max(0, sum(found) - width))
    return found


def cut(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
