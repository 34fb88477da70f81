"""The timeline of a programme: one bar a stage, with the P10 to P90 of its end."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document.chart_parts import INK, Drawn

LEGEND = "Bar: expected. Line with ends: P10 to P90 of the stage's end."
STEP_PX, ROW_PX, BAR_PX, BAR_DOWN_PX = 60, 42, 12, 9


def timeline(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """Days from the request of the machines; `rows` come from app/programme/document.py."""
    ink = INK[theme]
    scale = alt.Scale(domain=[0.0, float(rows["p90"].max()) * 1.02], nice=False)
    axis = parts.axis("Days from the request of the machines", theme, tickCount=6)
    base = alt.Chart(rows).encode(y=alt.Y("stage:N", sort=list(rows["stage"]), axis=None))
    tips = [
        alt.Tooltip("stage:N", title="Stage"),
        alt.Tooltip("text:N", title="Ends, P10 to P90"),
        alt.Tooltip("cost:N", title="Cost"),
        alt.Tooltip("layout:N", title="Layout"),
    ]
    bar = base.mark_bar(
        height=BAR_PX, yOffset=BAR_DOWN_PX, cornerRadius=1, color=parts.main_colour(theme)
    )
    across = base.mark_rule(color=ink, strokeWidth=1.5, yOffset=BAR_DOWN_PX)
    layers: list[Any] = [
        bar.encode(x=alt.X("start:Q", scale=scale, axis=axis), x2=alt.X2("end:Q"), tooltip=tips),
        across.encode(x=alt.X("p10:Q", scale=scale), x2=alt.X2("p90:Q"), tooltip=tips),
    ]
    for end in ("p10", "p90"):
        tick = base.mark_tick(color=ink, thickness=1.5, size=BAR_PX, yOffset=BAR_DOWN_PX)
        layers.append(tick.encode(x=alt.X(f"{end}:Q", scale=scale)))
    layers.append(parts.above(base, "label:N", theme, down_px=BAR_DOWN_PX))
    return alt.layer(*layers).properties(height=STEP_PX + ROW_PX * len(rows))
