"""What a document is made of: sections of paragraphs, lists, tables, figures and lines to copy.

Every text is plain: it holds no markup, and each writer shows it literally. No block depends on the
output medium.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from app.document.table import Table

if TYPE_CHECKING:
    from app.document.chart_files import Spec

Row: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One paragraph. A strong one is the answer; `level` is its depth below the paragraph it
    belongs to."""

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
    """A chart, a sentence that says what it shows, and its numbers for readers without a
    picture."""

    name: str  # file name, unique in a report
    alt: str
    caption: str
    spec: Spec
    numbers: Table[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """Text to copy as a whole: a link or a command."""

    label: str
    text: str
    address: str = ""  # target, if the text is a web address


Block: TypeAlias = Paragraph | Bullets | Table[Any] | Figure | Copied


@dataclass(frozen=True, slots=True)
class Section:
    """A second-level heading and its content."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report. Only `dated` changes from day to day."""

    title: str
    name: str  # the reader's name for the report; '' without one
    date: dt.date
    dated: str  # the line that says when it was written
    sections: tuple[Section, ...]


def line(text: str) -> str:
    """Text as one line without invisible characters: control, direction and line-break characters.

    >>> line("a\\n b\\x00\\u202ec")
    'a b c'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
