"""The charts of the Prices page: cheapest prices by cloud, and a price over time.

Text has the text colour of the theme, and nothing is encoded by colour alone.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document.chart_parts import FAINT, Drawn

CELL_PX, CELL_WIDTH_PX, HEAD_PX, HISTORY_PX, RATIO_PX = 24, 31, 150, 320, 200
DARK_CELL = 0.55  # share of the logarithmic scale above which a cell's number is white


def heatmap_px(cells: pd.DataFrame) -> int:
    """Height in pixels that fits the whole heatmap."""
    return HEAD_PX + CELL_PX * int(cells["accelerator"].nunique())


def heatmap(cells: pd.DataFrame, *, theme: str) -> Drawn:
    """Cheapest USD per GPU-hour by accelerator and cloud.

    Each cell shows the number; its colour encodes it on a logarithmic scale. A pair that is not
    offered has a dash.
    """
    offered, lacking = cells[cells["usd"].notna()], cells[cells["usd"].isna()]
    low, high = float(offered["usd"].min()), float(offered["usd"].max())
    middle = low ** (1 - DARK_CELL) * high**DARK_CELL
    x = alt.X(
        "provider:N",
        scale=alt.Scale(domain=sorted(cells["provider"].unique())),
        axis=parts.axis("Cloud", theme, labelAngle=-45, orient="top", labelOverlap=False),
    )
    y = alt.Y(
        "accelerator:N",
        scale=alt.Scale(domain=sorted(cells["accelerator"].unique())),
        axis=parts.axis(None, theme, labelLimit=140, labelOverlap=False),
    )
    pair = [
        alt.Tooltip("accelerator:N", title="Accelerator"),
        alt.Tooltip("provider:N", title="Cloud"),
    ]
    tooltip = [
        *pair,
        alt.Tooltip("usd:Q", title="USD per GPU-hour", format=".2f"),
        alt.Tooltip("instance:N", title="Instance"),
        alt.Tooltip("region:N", title="Region"),
        alt.Tooltip("kind:N", title="Purchase"),
        alt.Tooltip("seen:N", title="Seen"),
        alt.Tooltip("offers:Q", title="Offers"),
    ]
    colour = alt.Color(
        "usd:Q",
        scale=alt.Scale(type="log", scheme="viridis", reverse=True),
        legend=None,
    )
    base = alt.Chart(offered)
    squares = base.mark_rect(stroke=FAINT[theme], strokeWidth=0.3).encode(
        x=x, y=y, color=colour, tooltip=tooltip
    )
    numbers = base.mark_text(fontSize=11).encode(
        x=x,
        y=y,
        text=alt.Text("usd:Q", format=".2f"),
        tooltip=tooltip,
        color=alt.condition(f"datum.usd >= {middle}", alt.value("white"), alt.value("black")),
    )
    dashes = (
        alt.Chart(lacking[["accelerator", "provider"]])
        .mark_text(fontSize=11, color=FAINT[theme], text="-")
        .encode(x=x, y=y, tooltip=pair)
    )
    # Fixed steps, not the page's width: a small screen scrolls and numbers do not overlap.
    return alt.layer(squares, numbers, dashes).properties(
        height=alt.Step(CELL_PX), width=alt.Step(CELL_WIDTH_PX)
    )


def history(lines: pd.DataFrame, *, theme: str) -> Drawn:
    """USD per GPU-hour over time, with a step at each change and a gap where it is not known."""
    sources = sorted(lines["source"].unique())
    legend = parts.legend(theme, orient="bottom", columns=1, labelLimit=420)
    x = alt.X("at:T", axis=parts.axis("Day (UTC)", theme, format="%b %Y", tickCount=8))
    y = alt.Y(
        "usd_per_gpu_hour:Q",
        scale=alt.Scale(zero=True),
        axis=parts.axis("USD per GPU-hour", theme, format="~g"),
    )
    colour = alt.Color("source:N", scale=parts.colours(sources), legend=legend)
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
        detail=alt.Detail("piece:N"),
        strokeDash=alt.StrokeDash("source:N", scale=parts.dashes(sources), legend=legend),
    )
    dots = base.mark_point(size=40, filled=True).encode(x=x, y=y, color=colour, tooltip=tooltip)
    return alt.layer(steps, dots).properties(height=HISTORY_PX + 20 * len(sources))


def ratio(days: pd.DataFrame, *, theme: str) -> Drawn:
    """Spot price over on-demand price by day; blank on days when either is not known."""
    x = alt.X("day:T", axis=parts.axis("Day (UTC)", theme, format="%b %Y", tickCount=8))
    y = alt.Y(
        "ratio:Q",
        scale=alt.Scale(domain=[0, max(1.0, float(days["ratio"].max()))]),
        axis=parts.axis("Spot / on-demand (%)", theme, format="%"),
    )
    base = alt.Chart(days)
    line = base.mark_line(interpolate="step-after", color=parts.main_colour(theme)).encode(
        x=x, y=y, detail=alt.Detail("piece:N")
    )
    dots = base.mark_point(size=18, filled=True, color=parts.main_colour(theme)).encode(
        x=x,
        y=y,
        tooltip=[
            alt.Tooltip("day:T", title="On", format="%Y-%m-%d"),
            alt.Tooltip("ratio:Q", title="Spot / on-demand", format=".1%"),
        ],
    )
    return alt.layer(line, dots).properties(height=RATIO_PX)
