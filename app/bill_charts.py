"""The chart of a bill: a bar a line, with its lower and upper figure.

As in app/charts.py: text is drawn in the ink of the theme, and names stand above their bars.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.charts import FAINT, INK, PALETTE, Drawn

STEP_PX, ROW_PX, BAR_PX, BAR_DOWN_PX = 84, 42, 12, 9


def bars(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """Expected dollars a line as a bar, lower to upper as a line with ends across it. `rows` are
    those of app/bill_tables.py."""
    ink = INK[theme]
    low, high = min(0.0, float(rows["lower"].min())), float(rows["upper"].max())
    scale = alt.Scale(domain=[low, high * 1.02], nice=False)
    axis = alt.Axis(
        title="Dollars: bar expected, line lower to upper", format="$~s", labelColor=ink,
        titleColor=ink, titleLimit=400, labelOverlap="greedy", gridOpacity=0.4, tickCount=5,
    )  # fmt: skip
    x = alt.X("expected:Q", scale=scale, axis=axis)
    base = alt.Chart(rows).encode(y=alt.Y("line:N", sort=list(rows["line"]), axis=None))
    tips = [
        alt.Tooltip("line:N", title="Line"),
        alt.Tooltip("mean_text:N", title="Expected"),
        alt.Tooltip("text:N", title="Lower to upper"),
    ]
    colour = PALETTE[0 if theme == "light" else 4]
    drawn = base.mark_bar(height=BAR_PX, yOffset=BAR_DOWN_PX, cornerRadius=1, color=colour)
    across = base.mark_rule(color=ink, strokeWidth=1.5, yOffset=BAR_DOWN_PX)
    layers: list[Any] = [
        drawn.encode(x=x, tooltip=tips),
        across.encode(x=alt.X("lower:Q", scale=scale), x2="upper:Q", tooltip=tips),
    ]
    for end in ("lower", "upper"):
        tick = base.mark_tick(color=ink, thickness=1.5, size=BAR_PX, yOffset=BAR_DOWN_PX)
        layers.append(tick.encode(x=alt.X(f"{end}:Q", scale=scale)))
    text = base.mark_text(align="left", dx=2, dy=-BAR_DOWN_PX, color=ink, fontSize=12)
    layers.append(text.encode(x=alt.value(0), text="label:N"))
    zero = alt.Chart(pd.DataFrame({"x": [0.0]})).mark_rule(color=FAINT[theme], strokeWidth=1)
    layers.append(zero.encode(x=alt.X("x:Q", scale=scale)))
    return alt.layer(*layers).properties(height=STEP_PX + ROW_PX * len(rows))
