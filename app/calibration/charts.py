"""The charts of the Calibrate page, from the rows of app/calibration/document.py.

Text has the text colour of the theme, and nothing is encoded by colour alone. Names are above
their bars, so that both fit on a narrow screen.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document.chart_parts import INK, LIMIT, PALETTE, SHAPES, Drawn

ROW_PX, HEAD_PX, DOWN_PX = 38, 110, 9
CURVE_PX, HISTORY_PX, LEGEND_ROW_PX = 400, 360, 19
MOVED = ("faster", "as assumed", "slower")
MOVED_SHAPES = ("triangle-up", "circle", "triangle-down")
MOVED_COLOURS = (PALETTE[2], PALETTE[7], PALETTE[5])
BUS, TIME = "Bus bandwidth", "Time"
AXES = {BUS: ("busbw", "Bus bandwidth (GB/s)"), TIME: ("us", "Time of one call (µs)")}
FACTOR_TIPS = (
    alt.Tooltip("constant:N", title="Constant"),
    alt.Tooltip("factor:Q", title="Factor", format=".3f"),
    alt.Tooltip("low:Q", title="P10", format=".3f"),
    alt.Tooltip("high:Q", title="P90", format=".3f"),
)


def factors(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """The factor of each constant with P10 to P90; the dashed line is the assumption."""
    scale = parts.log_scale([*rows["low"], *rows["high"]], 1.0)
    axis = parts.axis("Factor on what was assumed", theme, format="~g")
    order = list(dict.fromkeys(rows["constant"]))
    base = alt.Chart(rows).encode(y=alt.Y("constant:N", sort=order, axis=None))
    tips = [
        *FACTOR_TIPS,
        alt.Tooltip("assumed:N", title="Assumed"),
        alt.Tooltip("measured:N", title="Measured"),
        alt.Tooltip("moved:N", title="It is"),
    ]
    bars = base.mark_rule(color=INK[theme], strokeWidth=2, yOffset=DOWN_PX).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q"), tooltip=tips
    )
    legend = parts.legend(theme)
    colours, shapes = (
        alt.Scale(domain=list(MOVED), range=list(values))
        for values in (MOVED_COLOURS, MOVED_SHAPES)
    )
    marks = _marks(base, 110, theme, yOffset=DOWN_PX).encode(
        x=alt.X("factor:Q", scale=scale, axis=axis),
        tooltip=tips,
        color=alt.Color("moved:N", scale=colours, legend=legend),
        shape=alt.Shape("moved:N", scale=shapes, legend=legend),
    )
    names = parts.above(base, "constant:N", theme, down_px=DOWN_PX)
    rule = parts.rule("x", 1.0, scale, LIMIT[theme])
    return alt.layer(rule, bars, marks, names).properties(height=HEAD_PX + ROW_PX * len(rows))


def collectives(points: pd.DataFrame, lines: pd.DataFrame, *, axis: str, theme: str) -> Drawn:
    """Measured points and fitted curves on logarithmic axes. `axis` is BUS or TIME."""
    column, title = AXES[axis]
    ops = list(dict.fromkeys(points["op"]))[: len(SHAPES)]
    x = alt.X(
        "bytes:Q",
        scale=parts.log_scale(points["bytes"]),
        axis=parts.axis("Size of the message (bytes)", theme, format="~s"),
    )
    y = alt.Y(
        f"{column}:Q",
        scale=parts.log_scale([*points[column], *lines[column]]),
        axis=parts.axis(title, theme, format="~g"),
    )
    legend = parts.legend(theme, columns=2)
    colour = alt.Color("op:N", scale=parts.colours(ops), legend=legend)
    dash = alt.StrokeDash("op:N", scale=parts.dashes(ops), legend=None)
    curves = alt.Chart(lines).mark_line(strokeWidth=1.8)
    dots = _marks(alt.Chart(points), 64, theme, strokeWidth=0.8).encode(
        x=x,
        y=y,
        color=colour,
        shape=alt.Shape("op:N", scale=parts.shapes(ops), legend=legend),
        tooltip=[
            alt.Tooltip("op:N", title="Operation"),
            alt.Tooltip("bytes:Q", title="Bytes", format=","),
            alt.Tooltip("us:Q", title="Time (µs)", format=",.1f"),
            alt.Tooltip("busbw:Q", title="Bus bandwidth (GB/s)", format=",.3f"),
            alt.Tooltip("spike:N", title="Left out as a spike"),
        ],
    )
    drawn = curves.encode(x=x, y=y, color=colour, strokeDash=dash)
    return alt.layer(drawn, dots).properties(height=CURVE_PX)


def history(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """The factor of each constant over time, one line per constant."""
    names = list(dict.fromkeys(rows["constant"]))
    data = alt.Chart(rows.assign(at=pd.to_datetime(rows["at"], utc=True, format="ISO8601")))
    scale = parts.log_scale(rows["factor"], 1.0)
    x = alt.X("at:T", axis=parts.axis("Measured on", theme, format="%Y-%m-%d", tickCount=5))
    y = alt.Y(
        "factor:Q", scale=scale, axis=parts.axis("Factor on what was assumed", theme, format="~g")
    )
    legend = parts.legend(theme, orient="bottom", columns=1)
    # With more constants than colours, the shapes differ.
    colour = alt.Color("constant:N", scale=parts.colours(names), legend=legend)
    lines = data.mark_line(strokeWidth=1.5).encode(x=x, y=y, color=colour)
    dots = _marks(data, 80, theme, strokeWidth=0.8).encode(
        x=x,
        y=y,
        color=colour,
        shape=alt.Shape("constant:N", scale=parts.shapes(names), legend=legend),
        tooltip=[
            *FACTOR_TIPS,
            alt.Tooltip("at:T", title="Measured on", format="%Y-%m-%d"),
            alt.Tooltip("host:N", title="Host"),
        ],
    )
    return alt.layer(parts.rule("y", 1.0, scale, LIMIT[theme]), lines, dots).properties(
        height=HISTORY_PX + LEGEND_ROW_PX * len(names)
    )


def _marks(chart: alt.Chart, size: int, theme: str, **more: float) -> alt.Chart:
    style: dict[str, Any] = {"filled": True, "opacity": 1, "stroke": INK[theme], "strokeWidth": 1}
    return chart.mark_point(size=size, **{**style, **more})
