"""A report as one HTML file: no script, no request, readable in the dark and on paper.

Pictures are in the file; the policy in its head lets a browser load nothing. Texts are escaped by
Jinja. A dark screen turns the colours of a chart over, so that each is held once.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template

from app.document.blocks import Figure, Report, line
from app.document.pictures import svg_of

TEMPLATE = Path(__file__).with_name("report.html.jinja")


def written(report: Report) -> bytes:
    """The file, in UTF-8."""
    return _template().render(report=report, language="en").encode("utf-8")


@cache
def _template() -> Template:
    """Every variable is escaped; one that is not there is an error."""
    made = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters["line"] = line
    made.filters["picture"] = _picture
    made.tests["of"] = _is_of
    return made.from_string(TEMPLATE.read_text(encoding="utf-8"))


def _is_of(part: object, kind: str) -> bool:
    """Whether a part of a report is of a kind: `block is of("Table")`."""
    return type(part).__name__ == kind


def _picture(figure: Figure) -> str:
    """The chart as an address that holds it."""
    drawn = svg_of(figure).encode("utf-8")
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode('ascii')}"
