"""The chart of a bill: one bar per line, with its P10 and P90.

Text has the theme's ink colour, and names stand above their bars.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document.chart_parts import FAINT, INK, Drawn

STEP_PX, ROW_PX, BAR_PX, BAR_DOWN_PX = 84, 42, 12, 9


def bars(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """Mean dollars of each line as a bar, with P10 to P90 as an error bar. `rows` come
    from app/bill/document.py."""
    ink = INK[theme]
    low, high = min(0.0, float(rows["lower"].min())), float(rows["upper"].max())
    scale = alt.Scale(domain=[low, high * 1.02], nice=False)
    axis = parts.usd_axis(theme, tickCount=5)
    x = alt.X("expected:Q", scale=scale, axis=axis)
    base = alt.Chart(rows).encode(y=alt.Y("line:N", sort=list(rows["line"]), axis=None))
    tips = [
        alt.Tooltip("line:N", title="Line"),
        alt.Tooltip("mean_text:N", title="Mean"),
        alt.Tooltip("text:N", title="P10 to P90"),
    ]
    colour = parts.main_colour(theme)
    drawn = base.mark_bar(height=BAR_PX, yOffset=BAR_DOWN_PX, cornerRadius=1, color=colour)
    across = base.mark_rule(color=ink, strokeWidth=1.5, yOffset=BAR_DOWN_PX)
    layers: list[Any] = [
        drawn.encode(x=x, tooltip=tips),
        across.encode(x=alt.X("lower:Q", scale=scale), x2=alt.X2("upper:Q"), tooltip=tips),
    ]
    for end in ("lower", "upper"):
        tick = base.mark_tick(color=ink, thickness=1.5, size=BAR_PX, yOffset=BAR_DOWN_PX)
        layers.append(tick.encode(x=alt.X(f"{end}:Q", scale=scale)))
    layers.append(parts.above(base, "label:N", theme, down_px=BAR_DOWN_PX))
    layers.append(parts.rule("x", 0.0, scale, FAINT[theme], [1, 0]))
    return alt.layer(*layers).properties(height=STEP_PX + ROW_PX * len(rows))
