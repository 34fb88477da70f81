"""The charts of a report as SVG. Each is drawn once, because drawing is the slowest part of a
report."""

from __future__ import annotations

import json
from functools import lru_cache

from app.document import chart_files
from app.document.blocks import Figure

THEME = "light"  # for every chart in a report; dark mode inverts it
KEPT = 48  # pictures of up to 200 kB


def svg_of(figure: Figure) -> str:
    """The SVG document of a figure; its text stays text."""
    return _drawn(json.dumps(figure.spec))


@lru_cache(maxsize=KEPT)
def _drawn(spec: str) -> str:
    return chart_files.svg(json.loads(spec), theme=THEME)
