"""A report as one HTML file: no script, no request, readable in dark mode and on paper.

Pictures are embedded in the file; the policy in its head forbids the browser to load anything.
Jinja escapes texts. In dark mode the colours of a chart are inverted, so each chart is embedded
once.
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
    """The template: every variable is escaped; a missing variable is an error."""
    made = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters["line"] = line
    made.filters["picture"] = _picture
    made.tests["of"] = _is_of
    return made.from_string(TEMPLATE.read_text(encoding="utf-8"))


def _is_of(part: object, kind: str) -> bool:
    """Whether a part of a report has a given type, for `block is of("Table")` in the template."""
    return type(part).__name__ == kind


def _picture(figure: Figure) -> str:
    """The chart as a data address."""
    drawn = svg_of(figure).encode("utf-8")
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn).decode('ascii')}"
