"""A report as Markdown (CommonMark with tables, as code hosts draw it).

Code hosts drop data: addresses, so one file cannot hold its pictures, and each chart becomes a
table of its numbers. Every text is escaped: a name cannot become a link, a heading or HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from app.document.blocks import Block, Bullets, Copied, Figure, Paragraph, Report, line
from app.document.table import Table

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~&$!])")
STARTS_A_BLOCK = re.compile(r"^([#\-+=])")
STARTS_A_LIST = re.compile(r"^(\d+)([.)])(?=\s|$)")
CHARTS = "Charts are in the HTML and the PDF of this report; here are their numbers."


def written(report: Report) -> bytes:
    """The file, in UTF-8."""
    parts = [f"# {escaped(report.title)}"]
    if report.name:
        parts.append(f"**{escaped(report.name)}**")
    parts += [escaped(report.dated), f"*{CHARTS}*"]
    for section in report.sections:
        parts.append(f"## {escaped(section.title)}")
        parts += map(_block, section.blocks)
    return ("\n\n".join(parts) + "\n").encode("utf-8")


def fragment(blocks: Iterable[Block]) -> str:
    """Blocks as part of another page: a comment."""
    return "\n\n".join(map(_block, blocks))


def escaped(text: str) -> str:
    """One line that Markdown shows literally.

    >>> escaped("[x](javascript:1) | <b>")
    '\\\\[x\\\\](javascript:1) \\\\| \\\\<b\\\\>'
    >>> escaped("=1+1"), escaped("1. a")
    ('\\\\=1+1', '1\\\\. a')
    """
    found = SPECIAL.sub(r"\\\1", line(text))
    found = STARTS_A_LIST.sub(r"\1\\\2", found)
    return STARTS_A_BLOCK.sub(r"\\\1", found)


def _block(block: Block) -> str:
    match block:
        case Paragraph(text, strong):
            return f"**{escaped(text)}**" if strong else escaped(text)
        case Bullets(items, title):
            listed = "\n".join(f"- {escaped(item)}" for item in items)
            return f"{escaped(title)}:\n\n{listed}" if title else listed
        case Table():
            return _table(block)
        case Figure():
            return f"{escaped(block.caption)}\n\n{_table(block.numbers)}"
        case Copied():
            return _copied(block)


def _table(table: Table[Any]) -> str:
    marks = ["---:" if n in table.numeric else "---" for n in range(len(table.head))]
    rows = (table.head, marks, *table.cells())
    lines = [
        f"| {' | '.join(cells)} |"
        for cells in ([c if row is marks else _cell(c) for c in row] for row in rows)
    ]
    return f"*{escaped(table.caption)}*\n\n" + "\n".join(lines)


def _cell(text: str) -> str:
    return escaped(text) or " "


def _copied(copied: Copied) -> str:
    """A fenced block; its fence is longer than any fence in the text."""
    text = line(copied.text)
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{escaped(copied.label)}:\n\n{fence}text\n{text}\n{fence}"
