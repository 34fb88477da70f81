"""A report as one HTML file: no script, no request, readable in dark mode and on paper.

Pictures are embedded in the file; the policy in its head forbids the browser to load anything.
Jinja escapes texts. In dark mode the colours of a chart are inverted, so each chart is embedded
once.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from app.document.blocks import Block, Figure, Report, Section, line
from app.document.pictures import svg_of

REPORT, BLOCKS = "report.html.jinja", "blocks.html.jinja"


def written(report: Report) -> bytes:
    """The file, in UTF-8."""
    return _templates().get_template(REPORT).render(report=report, language="en").encode("utf-8")


def fragment(blocks: Iterable[Block | Section]) -> str:
    """Blocks as part of somebody else's page, without styles: what a notebook shows."""
    drawn = vars(_templates().get_template(BLOCKS).make_module())["drawn"]
    parts = []
    for block in blocks:
        if isinstance(block, Section):
            parts.append(f"<p><strong>{escape(line(block.title))}</strong></p>")
            parts += [drawn(one) for one in block.blocks]
        else:
            parts.append(drawn(block))
    return f"<div>{''.join(parts)}</div>"


@cache
def _templates() -> Environment:
    """The templates: every variable is escaped; a missing variable is an error."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters["line"] = line
    made.filters["picture"] = _picture
    made.tests["of"] = _is_of
    return made


def _is_of(part: object, kind: str) -> bool:
    """Whether a part of a report has a given type, for `block is of("Table")` in the template."""
    return type(part).__name__ == kind


def _picture(figure: Figure) -> str:
    """The chart as a data address."""
    drawn = svg_of(figure).encode("utf-8")
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode('ascii')}"
