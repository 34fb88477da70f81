"""What a document is made of: sections of paragraphs, lists, tables, figures and lines to copy.

Every text is plain: no part holds markup, and each writer shows a text as it is written. No block
says for which medium it is.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, TypeAlias

from app.document.chart_files import Spec
from app.document.table import Table

Row: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph; a strong one is the answer; `level` steps below what it belongs to."""

    text: str
    strong: bool = False
    level: int = 0


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A chart, what it shows in a sentence, and its numbers for who has no picture."""

    name: str  # of its file, unique in a report
    alt: str
    caption: str
    spec: Spec
    numbers: Table[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Text to copy whole: a link or a command."""

    label: str
    text: str
    address: str = ""  # where it leads, if it is an address of the web


Block: TypeAlias = Paragraph | Bullets | Table[Any] | Figure | Copied


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of the second order and what is under it."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report. Only `dated` changes from day to day."""

    title: str
    name: str  # what its reader calls it; '' without one
    date: dt.date
    dated: str  # the line that says when it was written
    sections: tuple[Section, ...]


def line(text: str) -> str:
    """Text as one line without what no one sees: control, direction and line-break characters.

    >>> line("a\\n b\\x00\\u202ec")
    'a b c'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
