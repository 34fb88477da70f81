"""The chart of a plan's sensitivity to each input."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.document.chart_parts import FAINT, INK, PALETTE, Drawn, above, axis, legend

TORNADO_PX = 92  # height of the axis and the legend
ROW_PX, BAR_PX, BAR_DOWN_PX = 34, 12, 8  # one row: a name with a bar beneath it


def tornado(rows: pd.DataFrame, *, moved: str, theme: str) -> Drawn:
    """The effect of a lower and a higher value of each input, the largest on top. `moved` names
    the affected quantity. Names stand above their bars, so that a narrow screen has room."""
    ink = INK[theme]
    widest = float(rows["moved"].abs().max()) or 1.0
    names = list(rows.sort_values("order")["input"].unique())
    colours = [PALETTE[1], PALETTE[0 if theme == "light" else 4]]
    scale = alt.Scale(domain=[-widest * 2, widest * 2], nice=False)
    base = alt.Chart(rows).encode(y=alt.Y("input:N", sort=names, axis=None))
    across = axis(moved, theme, format="+.0%", tickCount=4)
    bars = base.mark_bar(
        height=BAR_PX, yOffset=BAR_DOWN_PX, cornerRadius=1, stroke=ink, strokeWidth=0.6
    ).encode(
        x=alt.X("moved:Q", scale=scale, axis=across),
        color=alt.Color(
            "side:N",
            scale=alt.Scale(domain=["lower", "higher"], range=colours),
            legend=legend(theme, title="Input is", orient="top", symbolStrokeWidth=0),
        ),
        tooltip=[alt.Tooltip("text:N", title="Input")],
    )
    zero = alt.Chart(pd.DataFrame({"moved": [0.0]})).mark_rule(color=FAINT[theme], strokeWidth=1)
    layers: list[Any] = [zero.encode(x=alt.X("moved:Q", scale=scale)), bars]
    for sign in (1, -1):
        values = base.transform_filter(f"datum.moved * {sign} > 0").mark_text(
            align="left" if sign > 0 else "right",
            dx=4 * sign,
            dy=BAR_DOWN_PX,
            color=ink,
            fontSize=11,
        )
        layers.append(values.encode(x=alt.X("moved:Q", scale=scale), text=alt.Text("at:N")))
    layers.append(
        above(base.transform_filter("datum.side == 'lower'"), "input:N", theme, down_px=BAR_DOWN_PX)
    )
    return alt.layer(*layers).properties(height=TORNADO_PX + ROW_PX * len(names))
