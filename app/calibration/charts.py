"""The charts of the Calibrate page, from the tables of app/calibration/document.py.

Text has the text colour of the theme, and nothing is encoded by colour alone. Names are above
their bars, so that both fit on a narrow screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
FACTOR_TIPS = (
    alt.Tooltip("factor:Q", title="Factor", format=".3f"),
    alt.Tooltip("low:Q", title="P10", format=".3f"),
    alt.Tooltip("high:Q", title="P90", format=".3f"),
)
AXES = {BUS: ("busbw", "Bus bandwidth (GB/s)"), TIME: ("us", "Time of one call (µs)")}


def factors(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """The factor of each constant with P10 to P90; the dashed line is the assumption."""
    scale = parts.log_scale([*rows["low"], *rows["high"]], 1.0)
    axis = parts.axis("Factor on what was assumed", theme, format="~g")
    base = _named(rows, "constant")
    tips = [
        alt.Tooltip("constant:N", title="Constant"),
        *FACTOR_TIPS,
        alt.Tooltip("assumed:N", title="Assumed"),
        alt.Tooltip("measured:N", title="Measured"),
        alt.Tooltip("moved:N", title="It is"),
    ]
    bars = base.mark_rule(color=INK[theme], strokeWidth=2, yOffset=DOWN_PX).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q"), tooltip=tips
    )
    marks = _marks(base, 110, theme, yOffset=DOWN_PX).encode(
        x=alt.X("factor:Q", scale=scale, axis=axis),
        tooltip=tips,
        **_kinds("moved", MOVED, MOVED_COLOURS, MOVED_SHAPES, theme),
    )
    layers = parts.rule("x", 1.0, scale, LIMIT[theme]), bars, marks
    return _rows(*layers, of=base, name="constant", num=len(rows), theme=theme)


def ratios(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """Measured over forecast time of the held-out step; the band is an error of +-5%."""
    low, high = 1 / (1 + NEAR), 1 / (1 - NEAR)
    scale = parts.log_scale(rows["measured_over_forecast"], low, high)
    axis = parts.axis("Measured / forecast", theme, format="~g")
    base = _named(rows, "result")
    marks = _marks(base, 130, theme, yOffset=DOWN_PX).encode(
        x=alt.X("measured_over_forecast:Q", scale=scale, axis=axis),
        tooltip=[
            alt.Tooltip("result:N", title="Result"),
            alt.Tooltip("forecast:N", title="Forecast"),
            alt.Tooltip("measured_over_forecast:Q", title="Measured / forecast", format=".3f"),
        ],
        **_kinds("forecast", FORECASTS, (PALETTE[1], PALETTE[0]), ("square", "circle"), theme),
    )
    layers = parts.band("x", low, high, scale, theme), parts.rule("x", 1.0, scale, LIMIT[theme])
    return _rows(*layers, marks, of=base, name="result", num=rows["result"].nunique(), theme=theme)


def collectives(points: pd.DataFrame, lines: pd.DataFrame, *, of: str, theme: str) -> Drawn:
    """Measured points and fitted curves on logarithmic axes. `of` is BUS or TIME."""
    column, title = AXES[of]
    ops = list(dict.fromkeys(points["op"]))[: len(SHAPES)]
    values = [*points[column], *lines[column]]
    x = alt.X(
        "bytes:Q",
        scale=parts.log_scale(points["bytes"]),
        axis=parts.axis("Size of the message (bytes)", theme, format="~s"),
    )
    y = alt.Y(f"{column}:Q", scale=parts.log_scale(values),
              axis=parts.axis(title, theme, format="~g"))  # fmt: skip
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
            alt.Tooltip("constant:N", title="Constant"),
            alt.Tooltip("at:T", title="Measured on", format="%Y-%m-%d"),
            alt.Tooltip("host:N", title="Host"),
            *FACTOR_TIPS,
        ],
    )
    return alt.layer(parts.rule("y", 1.0, scale, LIMIT[theme]), lines, dots).properties(
        height=HISTORY_PX + LEGEND_ROW_PX * len(names)
    )


def _named(rows: pd.DataFrame, name: str) -> alt.Chart:
    """A chart with one row per name, in the order of the table."""
    order = list(dict.fromkeys(rows[name]))
    return alt.Chart(rows).encode(y=alt.Y(f"{name}:N", sort=order, axis=None))


def _marks(of: alt.Chart, size: int, theme: str, **more: float) -> alt.Chart:
    style: dict[str, Any] = {"filled": True, "opacity": 1, "stroke": INK[theme], "strokeWidth": 1}
    return of.mark_point(size=size, **{**style, **more})


def _kinds(
    field: str, names: Sequence[str], colours: Sequence[str], shapes: Sequence[str], theme: str
) -> dict[str, Any]:
    """Colour and shape of a mark, by what it is."""
    scales = [alt.Scale(domain=list(names), range=list(r)) for r in (colours, shapes)]
    legend = parts.legend(theme)
    return {
        "color": alt.Color(f"{field}:N", scale=scales[0], legend=legend),
        "shape": alt.Shape(f"{field}:N", scale=scales[1], legend=legend),
    }


def _rows(*layers: alt.Chart, of: alt.Chart, name: str, num: int, theme: str) -> Drawn:
    """The layers of a chart of `num` rows, with the name of each row above its mark."""
    names = parts.above(of, f"{name}:N", theme, down_px=DOWN_PX)
    return alt.layer(*layers, names).properties(height=HEAD_PX + ROW_PX * num)
