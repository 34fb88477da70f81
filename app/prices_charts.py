"""The charts of the Price data page: who asks least for what, and a price over time.

As in app/charts.py: text is drawn in the ink of the theme, and colour is never alone.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.charts import FAINT, INK, PALETTE, Drawn

CELL_PX, CELL_WIDTH_PX, HEAD_PX, HISTORY_PX, RATIO_PX = 24, 31, 150, 320, 200
DARK_CELL = 0.55  # of the logarithmic scale, from which a cell's number is drawn in white
STROKES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3))


def _axis(title: str | None, theme: str, **more: Any) -> alt.Axis:
    given = {"titleLimit": 400, "gridOpacity": 0.4, **more}
    return alt.Axis(title=title, labelColor=INK[theme], titleColor=INK[theme], **given)


def heatmap_px(cells: pd.DataFrame) -> int:
    """Height that holds the whole heatmap."""
    return HEAD_PX + CELL_PX * int(cells["accelerator"].nunique())


def heatmap(cells: pd.DataFrame, *, theme: str) -> Drawn:
    """Cheapest USD per GPU-hour by accelerator and cloud: the number is in the cell, the colour
    says the same on a logarithmic scale; a cell that is not offered has a dash."""
    offered = cells[cells["usd"].notna()]
    low, high = float(offered["usd"].min()), float(offered["usd"].max())
    middle = low ** (1 - DARK_CELL) * high**DARK_CELL
    x = alt.X(
        "provider:N",
        axis=_axis("Cloud", theme, labelAngle=-45, orient="top", labelOverlap=False),
    )
    y = alt.Y("accelerator:N", axis=_axis(None, theme, labelLimit=140, labelOverlap=False))
    tooltip = [
        alt.Tooltip("accelerator:N", title="Accelerator"),
        alt.Tooltip("provider:N", title="Cloud"),
        alt.Tooltip("text:N", title="USD per GPU-hour"),
        alt.Tooltip("where:N", title="Cheapest"),
        alt.Tooltip("offers:Q", title="Offers"),
    ]
    colour = alt.Color(
        "usd:Q",
        scale=alt.Scale(type="log", scheme="viridis", reverse=True),
        legend=None,
    )
    base = alt.Chart(cells)
    squares = (
        base.transform_filter("isValid(datum.usd)")
        .mark_rect(stroke=FAINT[theme], strokeWidth=0.3)
        .encode(x=x, y=y, color=colour, tooltip=tooltip)
    )
    numbers = (
        base.transform_filter("isValid(datum.usd)")
        .mark_text(fontSize=11)
        .encode(
            x=x,
            y=y,
            text="text:N",
            tooltip=tooltip,
            color=alt.condition(f"datum.usd >= {middle}", alt.value("white"), alt.value("black")),
        )
    )
    dashes = (
        base.transform_filter("!isValid(datum.usd)")
        .mark_text(fontSize=11, color=FAINT[theme])
        .encode(x=x, y=y, text="text:N", tooltip=tooltip)
    )
    # Steps, not the page's width: on a small screen the chart scrolls and numbers stay apart.
    return alt.layer(squares, numbers, dashes).properties(
        height=alt.Step(CELL_PX), width=alt.Step(CELL_WIDTH_PX)
    )


def history(lines: pd.DataFrame, *, theme: str) -> Drawn:
    """USD per GPU-hour over time, a step at each change. A gap in what was seen is a gap."""
    sources = sorted(lines["source"].unique())
    legend = alt.Legend(
        title=None, orient="bottom", columns=1, labelLimit=420, labelColor=INK[theme]
    )
    dashes = [list(STROKES[i % len(STROKES)]) for i in range(len(sources))]
    x = alt.X("at:T", axis=_axis(None, theme, format="%b %Y", labelOverlap="greedy", tickCount=8))
    y = alt.Y(
        "usd_per_gpu_hour:Q",
        scale=alt.Scale(zero=True),
        axis=_axis("USD per GPU-hour", theme, format="~g"),
    )
    colour = alt.Color(
        "source:N",
        scale=alt.Scale(
            domain=sources, range=[PALETTE[i % len(PALETTE)] for i in range(len(sources))]
        ),
        legend=legend,
    )
    tooltip = [
        alt.Tooltip("at:T", title="On", format="%Y-%m-%d"),
        alt.Tooltip("usd_per_gpu_hour:Q", title="USD per GPU-hour", format=".4~g"),
        alt.Tooltip("usd_per_hour:Q", title="USD per instance-hour", format=".5~g"),
        alt.Tooltip("source:N", title="Source"),
    ]
    base = alt.Chart(lines)
    steps = base.mark_line(interpolate="step-after", strokeWidth=2).encode(
        x=x,
        y=y,
        color=colour,
        detail="piece:N",
        strokeDash=alt.StrokeDash(
            "source:N", scale=alt.Scale(domain=sources, range=dashes), legend=legend
        ),
    )
    dots = base.mark_point(size=40, filled=True).encode(x=x, y=y, color=colour, tooltip=tooltip)
    return alt.layer(steps, dots).properties(height=HISTORY_PX + 20 * len(sources))


def ratio(days: pd.DataFrame, *, theme: str) -> Drawn:
    """Spot over on-demand by day; days on which one of them is not known are left blank."""
    x = alt.X("day:T", axis=_axis(None, theme, format="%b %Y", labelOverlap="greedy", tickCount=8))
    y = alt.Y(
        "ratio:Q",
        scale=alt.Scale(domain=[0, max(1.0, float(days["ratio"].max()))]),
        axis=_axis("Spot / on-demand", theme, format="%"),
    )
    base = alt.Chart(days)
    line = base.mark_line(interpolate="step-after", color=PALETTE[0]).encode(
        x=x, y=y, detail="piece:N"
    )
    dots = base.mark_point(size=18, filled=True, color=PALETTE[0]).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("day:T", title="On", format="%Y-%m-%d"),
            alt.Tooltip("ratio:Q", title="Spot / on-demand", format=".1%"),
        ],
    )
    return alt.layer(line, dots).properties(height=RATIO_PX)
