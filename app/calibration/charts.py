"""The charts of the Calibration page, from the tables of app/calibration/document.py.

Text has the text colour of the theme, and nothing is encoded by colour alone. Names are above
their bars, so that both fit on a narrow screen.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document.chart_parts import INK, LIMIT, PALETTE, SHAPES, Drawn

ROW_PX, HEAD_PX, DOWN_PX = 38, 110, 9
CURVE_PX, HISTORY_PX, LEGEND_ROW_PX = 400, 360, 19
NEAR = 0.05  # allowed error of the held-out step on a GPU
MOVED = ("faster", "as assumed", "slower")
MOVED_SHAPES = ("triangle-up", "circle", "triangle-down")
MOVED_COLOURS = (PALETTE[2], PALETTE[7], PALETTE[5])
FORECASTS = ("without it", "with it")
BUS, TIME = "Bus bandwidth", "Time"
AXES = {BUS: ("busbw", "Bus bandwidth (GB/s)"), TIME: ("us", "Time of one call (µs)")}


def factors(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """The factor of each constant with P10 to P90; the dashed line is the assumption."""
    ink = INK[theme]
    scale = parts.log_scale([*rows["low"], *rows["high"]], 1.0)
    names = list(rows["constant"])
    base = alt.Chart(rows).encode(y=alt.Y("constant:N", sort=names, axis=None))
    axis = parts.axis("Factor on what was assumed", theme, format="~g")
    tips = [
        alt.Tooltip("constant:N", title="Constant"),
        alt.Tooltip("factor:Q", title="Factor", format=".3f"),
        alt.Tooltip("low:Q", title="P10", format=".3f"),
        alt.Tooltip("high:Q", title="P90", format=".3f"),
        alt.Tooltip("assumed:N", title="Assumed"),
        alt.Tooltip("measured:N", title="Measured"),
        alt.Tooltip("moved:N", title="It is"),
    ]
    bars = base.mark_rule(color=ink, strokeWidth=2, yOffset=DOWN_PX).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q"), tooltip=tips
    )
    legend = parts.legend(theme)
    marks = base.mark_point(
        size=110, filled=True, opacity=1, stroke=ink, strokeWidth=1, yOffset=DOWN_PX
    ).encode(
        x=alt.X("factor:Q", scale=scale, axis=axis),
        color=alt.Color(
            "moved:N",
            scale=alt.Scale(domain=list(MOVED), range=list(MOVED_COLOURS)),
            legend=legend,
        ),
        shape=alt.Shape(
            "moved:N", scale=alt.Scale(domain=list(MOVED), range=list(MOVED_SHAPES)), legend=legend
        ),
        tooltip=tips,
    )
    layers = (
        parts.rule("x", 1.0, scale, LIMIT[theme]),
        bars,
        marks,
        parts.above(base, "constant:N", theme, down_px=DOWN_PX),
    )
    return alt.layer(*layers).properties(height=HEAD_PX + ROW_PX * len(names))


def ratios(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """Measured over forecast time of the held-out step; the band is an error of +-5%."""
    ink, low, high = INK[theme], 1 / (1 + NEAR), 1 / (1 - NEAR)
    scale = parts.log_scale(rows["measured_over_forecast"], low, high)
    names = list(dict.fromkeys(rows["result"]))
    band = parts.band("x", low, high, scale, theme)
    base = alt.Chart(rows).encode(y=alt.Y("result:N", sort=names, axis=None))
    axis = parts.axis("Measured / forecast", theme, format="~g")
    legend = parts.legend(theme)
    marks = base.mark_point(
        size=130, filled=True, opacity=1, stroke=ink, strokeWidth=1, yOffset=DOWN_PX
    ).encode(
        x=alt.X("measured_over_forecast:Q", scale=scale, axis=axis),
        color=alt.Color(
            "forecast:N",
            scale=alt.Scale(domain=list(FORECASTS), range=[PALETTE[1], PALETTE[0]]),
            legend=legend,
        ),
        shape=alt.Shape(
            "forecast:N",
            scale=alt.Scale(domain=list(FORECASTS), range=["square", "circle"]),
            legend=legend,
        ),
        tooltip=[
            alt.Tooltip("result:N", title="Result"),
            alt.Tooltip("forecast:N", title="Forecast"),
            alt.Tooltip("measured_over_forecast:Q", title="Measured / forecast", format=".3f"),
        ],
    )
    layers = (
        band,
        parts.rule("x", 1.0, scale, LIMIT[theme]),
        marks,
        parts.above(base, "result:N", theme, down_px=DOWN_PX),
    )
    return alt.layer(*layers).properties(height=HEAD_PX + ROW_PX * len(names))


def collectives(points: pd.DataFrame, lines: pd.DataFrame, *, of: str, theme: str) -> Drawn:
    """Measured points and fitted curves on logarithmic axes. `of` is BUS or TIME."""
    ink = INK[theme]
    column, title = AXES[of]
    ops = list(dict.fromkeys(points["op"]))[: len(SHAPES)]
    x = alt.X(
        "bytes:Q",
        scale=parts.log_scale(points["bytes"]),
        axis=parts.axis("Size of the message (bytes)", theme, format="~s"),
    )
    values = [*points[column], *lines[column]]
    y = alt.Y(f"{column}:Q", scale=parts.log_scale(values),
              axis=parts.axis(title, theme, format="~g"))  # fmt: skip
    colour = parts.colours(ops)
    legend = parts.legend(theme, columns=2)
    drawn = (
        alt.Chart(lines)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=x, y=y, color=alt.Color("op:N", scale=colour, legend=legend),
            strokeDash=alt.StrokeDash("op:N", scale=parts.dashes(ops), legend=None),
        )
    )  # fmt: skip
    dots = (
        alt.Chart(points)
        .mark_point(size=64, filled=True, opacity=1, stroke=ink, strokeWidth=0.8)
        .encode(
            x=x,
            y=y,
            color=alt.Color("op:N", scale=colour, legend=legend),
            shape=alt.Shape("op:N", scale=parts.shapes(ops), legend=legend),
            tooltip=[
                alt.Tooltip("op:N", title="Operation"),
                alt.Tooltip("bytes:Q", title="Bytes", format=","),
                alt.Tooltip("us:Q", title="Time (µs)", format=",.1f"),
                alt.Tooltip("busbw:Q", title="Bus bandwidth (GB/s)", format=",.3f"),
                alt.Tooltip("spike:N", title="Left out as a spike"),
            ],
        )
    )
    return alt.layer(drawn, dots).properties(height=CURVE_PX)


def history(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """The factor of each constant over time, one line per constant."""
    ink = INK[theme]
    names = list(dict.fromkeys(rows["constant"]))
    data = rows.assign(at=pd.to_datetime(rows["at"], utc=True, format="ISO8601"))
    scale = parts.log_scale(rows["factor"], 1.0)
    x = alt.X("at:T", axis=parts.axis("Measured on", theme, format="%Y-%m-%d", tickCount=5))
    y = alt.Y(
        "factor:Q", scale=scale, axis=parts.axis("Factor on what was assumed", theme, format="~g")
    )
    colour = parts.colours(names)  # with more constants than colours, the shapes differ
    legend = parts.legend(theme, orient="bottom", columns=1)
    lines = (
        alt.Chart(data)
        .mark_line(strokeWidth=1.5)
        .encode(x=x, y=y, color=alt.Color("constant:N", scale=colour, legend=legend))
    )
    dots = (
        alt.Chart(data)
        .mark_point(size=80, filled=True, opacity=1, stroke=ink, strokeWidth=0.8)
        .encode(
            x=x,
            y=y,
            color=alt.Color("constant:N", scale=colour, legend=legend),
            shape=alt.Shape("constant:N", scale=parts.shapes(names), legend=legend),
            tooltip=[
                alt.Tooltip("constant:N", title="Constant"),
                alt.Tooltip("at:T", title="Measured on", format="%Y-%m-%d"),
                alt.Tooltip("host:N", title="Host"),
                alt.Tooltip("factor:Q", title="Factor", format=".3f"),
                alt.Tooltip("low:Q", title="P10", format=".3f"),
                alt.Tooltip("high:Q", title="P90", format=".3f"),
            ],
        )
    )
    return alt.layer(parts.rule("y", 1.0, scale, LIMIT[theme]), lines, dots).properties(
        height=HISTORY_PX + LEGEND_ROW_PX * len(names)
    )
