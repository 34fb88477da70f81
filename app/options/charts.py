"""The heatmap of the Options page. Colour is never the only carrier of a value."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import lru_cache

import altair as alt
import pandas as pd

from app.document.chart_files import Spec, spec_of
from app.document.chart_parts import FAINT, INK, axis

CELL_PX, CELL_WIDTH_PX, HEAD_PX = 26, 53, 150
# Viridis, reversed and in steps: the lowest is light. Text is black or white, for contrast.
VIRIDIS = ("#fde725", "#90d743", "#35b779", "#21918c", "#31688e", "#443983", "#440154")
WHITE_FROM = 4  # levels from here up have white text, lower ones black


def heatmap_px(cells: pd.DataFrame) -> int:
    """Height in pixels of the whole heatmap."""
    return HEAD_PX + CELL_PX * int(cells["gpu"].nunique())


def heatmap(cells: pd.DataFrame, *, title: str, theme: str) -> Spec:
    """GPUs by clouds: each cell shows its number, and a colour for it. A cell without a number
    has a mark. `cells` is in the order of the axes."""
    spec = copy.deepcopy(_empty(title, theme))
    gpus, clouds = list(cells["gpu"].unique()), list(cells["cloud"].unique())
    for part in _parts(spec):
        part.pop("data", None)
        encoding = part.get("encoding", {})
        for channel, order in (("x", clouds), ("y", gpus)):
            if channel in encoding:
                encoding[channel]["sort"] = order
    values = json.loads(cells.to_json(orient="records"))  # NaN: null
    return {**spec, "data": {"values": values}}


def _parts(spec: Spec) -> Iterator[Spec]:
    """A chart and its layers."""
    yield spec
    for layer in spec.get("layer", ()):
        yield from _parts(layer)


@lru_cache(maxsize=8)
def _empty(title: str, theme: str) -> Spec:
    """The chart without data and sort order: the slow part to build, so it is built once."""
    bare = {"labelOverlap": False, "domain": False, "ticks": False, "grid": False}
    x = alt.X(
        "cloud:N",
        axis=axis("Cloud, the best first", theme, labelAngle=-45, orient="top", **bare),
    )
    y = alt.Y(
        "gpu:N",
        axis=axis(None, theme, labelLimit=140, **bare),
    )
    tooltip = [
        alt.Tooltip("gpu:N", title="GPU"),
        alt.Tooltip("cloud:N", title="Cloud"),
        alt.Tooltip("text:N", title=title),
        alt.Tooltip("where:N", title="Plan"),
    ]
    base = alt.Chart().encode(x=x, y=y, tooltip=tooltip)
    numbers = base.transform_filter("isValid(datum.level)")
    squares = numbers.mark_rect(stroke=FAINT[theme], strokeWidth=0.3, aria=False).encode(
        color=alt.Color(
            "level:O",
            scale=alt.Scale(domain=list(range(len(VIRIDIS))), range=list(VIRIDIS)),
            legend=None,
        )
    )
    texts = numbers.mark_text(fontSize=11).encode(
        text=alt.Text("text:N"),
        color=alt.condition(
            f"datum.level >= {WHITE_FROM}", alt.value("#FFFFFF"), alt.value("#000000")
        ),
    )
    marks = base.transform_filter("!isValid(datum.level)").mark_text(
        fontSize=12, color=INK[theme]
    ).encode(text=alt.Text("text:N"))  # fmt: skip
    # Fixed cell sizes: on a small screen the chart scrolls and the numbers stay readable.
    drawn = alt.layer(squares, texts, marks).properties(
        height=alt.Step(CELL_PX), width=alt.Step(CELL_WIDTH_PX)
    )
    spec = spec_of(drawn)
    spec.pop("datasets", None)
    return spec
