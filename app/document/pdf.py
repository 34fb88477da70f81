"""A report as PDF: tagged (PDF/UA-1) and archivable (PDF/A-2a), typeset by Typst.

Every text is passed as JSON and placed as text: report.typ holds all the markup. The fonts are
those bundled with Typst, so that a report is the same on every machine; a character that they lack
is written as its code, as U+4E2D. Typst needs no network: the layout imports no package.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from app.document import chart_files
from app.document.blocks import Block, Bullets, Copied, Figure, Paragraph, Report, line
from app.document.on_use import typst
from app.document.pictures import svg_of
from app.document.table import Table

TEMPLATE = Path(__file__).with_name("report.typ")
STANDARDS: tuple[Any, ...] = ("a-2a", "ua-1")
FONT = "Libertinus Serif"
# Characters that the fonts have; PDF/UA export fails on any other.
SHOWN = re.compile(
    r"[\x20-\x7e\xa0-\xac\xae-\u017f\u0384-\u038a\u038c\u038e-\u03a1\u03a3-\u03ce\u0400-\u045f"
    r"\u2010-\u2027\u2030-\u2040\u2042\u2044-\u2052\u2054-\u205e\u20a0-\u20bf\u2190-\u2199"
    r"\u2200-\u22ff]"
)
LONG_WORD = 18  # characters that fit into a narrow column
AFTER = re.compile(r"(?<=[/&,=?._:;-])")  # where a long word may be broken


def written(report: Report) -> bytes:
    """The file. The same report gives the same bytes."""
    day = dt.datetime.combine(report.date, dt.time(), dt.UTC)
    return typst.compile(
        _template(),
        sys_inputs={"report": json.dumps(_report(report))},
        pdf_standards=list(STANDARDS),
        ignore_system_fonts=True,
        timestamp=day,
    )


@cache
def _template() -> bytes:
    return TEMPLATE.read_bytes()


def shown(text: str) -> str:
    """One line that uses only characters of the fonts.

    >>> shown("a\\u4e2db")
    'aU+4E2Db'
    """
    return "".join(c if SHOWN.match(c) else f"U+{ord(c):04X}" for c in line(text))


def pieces(text: str) -> list[str]:
    """Split a text at the places where a line may break: only long words are broken inside.

    >>> pieces("see https://example.com/prices/list?gpu=h100")
    ['see https:', '/', '/', 'example.', 'com/', 'prices/', 'list?', 'gpu=', 'h100']
    """
    found: list[str] = [""]
    for word in re.split(r"(?<= )", shown(text)):
        if len(word) <= LONG_WORD:
            found[-1] += word
            continue
        first, *rest = [p for part in AFTER.split(word) for p in _short(part)]
        found[-1] += first
        found += rest
    return [p for p in found if p]


def _short(part: str) -> list[str]:
    return [part[n : n + LONG_WORD] for n in range(0, len(part), LONG_WORD)]


def _report(report: Report) -> dict[str, Any]:
    return {
        "title": shown(report.title),
        "name": pieces(report.name),
        "dated": shown(report.dated),
        "dated_pieces": pieces(report.dated),
        "sections": [
            {"title": pieces(s.title), "blocks": [_block(b) for b in s.blocks]}
            for s in report.sections
        ],
    }


def _block(block: Block) -> dict[str, Any]:
    match block:
        case Paragraph(text, strong):
            return {"kind": "paragraph", "text": pieces(text), "strong": strong}
        case Bullets(items, title):
            listed = [pieces(item) for item in items]
            return {"kind": "bullets", "title": pieces(title), "items": listed}
        case Table():
            return _table(block)
        case Figure():
            return {
                "kind": "figure",
                "svg": _svg(block),
                "alt": shown(block.alt),
                "caption": pieces(block.caption),
            }
        case Copied():
            return {
                "kind": "copied",
                "label": pieces(block.label),
                "text": pieces(block.text),
                "address": line(block.address),
            }


def _table(table: Table[Any]) -> dict[str, Any]:
    """The data of a table. A width of 0 is as wide as its content."""
    rest = [0] * (len(table.head) - 1)
    return {
        "kind": "table",
        "caption": pieces(table.caption),
        "columns": list(table.widths) or [1, *rest],
        "numeric": [n in table.numeric for n in range(len(table.head))],
        "head": [pieces(cell) for cell in table.head],
        "rows": [[pieces(cell) for cell in row] for row in table.cells()],
    }


def _svg(figure: Figure) -> str:
    """The chart with its text in the font of the page."""
    return svg_of(figure).replace(f'font-family="{chart_files.FONT}"', f'font-family="{FONT}"')
