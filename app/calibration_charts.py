"""The charts of the Calibration page, of ready columns of app/calibration_tables.py.

As in app/charts.py: text is drawn in the ink of the theme, and colour is never alone. Names stand
above their bars, so that a narrow screen has room for both.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.charts import FAINT, INK, LIMIT, PALETTE, Drawn

ROW_PX, HEAD_PX, DOWN_PX = 38, 110, 9
CURVE_PX, HISTORY_PX, LEGEND_ROW_PX = 400, 360, 19
NEAR = 0.05  # what a held-out step is held to on a GPU
GAP = 1.12
MOVED = ("faster", "as assumed", "slower")
MOVED_SHAPES = ("triangle-up", "circle", "triangle-down")
MOVED_COLOURS = (PALETTE[2], PALETTE[7], PALETTE[5])
FORECASTS = ("without it", "with it")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down",
          "triangle-right", "triangle-left")  # fmt: skip
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 4], [1, 3], [10, 2, 2, 2])
BUS, TIME = "Bus bandwidth", "Time"
AXES = {BUS: ("busbw", "Bus bandwidth (GB/s)"), TIME: ("us", "Time of one call (µs)")}


def _axis(title: str | None, theme: str, **more: Any) -> alt.Axis:
    given = {"labelOverlap": "greedy", "titleLimit": 400, "gridOpacity": 0.4, **more}
    return alt.Axis(title=title, labelColor=INK[theme], titleColor=INK[theme], **given)


def _legend(theme: str, **more: Any) -> alt.Legend:
    given: dict[str, Any] = {
        "title": None, "orient": "top", "columns": 3, "labelLimit": 260, "rowPadding": 3,
        "symbolStrokeWidth": 1, "symbolOpacity": 1,
    }  # fmt: skip
    return alt.Legend(labelColor=INK[theme], **{**given, **more})


def _log(*values: float) -> alt.Scale:
    return alt.Scale(type="log", domain=[min(values) / GAP, max(values) * GAP], nice=False)


def _above(rows: alt.Chart, name: str, ink: str) -> alt.Chart:
    """The name of each row, above its mark at the left."""
    text = rows.mark_text(align="left", dx=2, dy=-DOWN_PX, color=ink, fontSize=12)
    return text.encode(x=alt.value(0), text=name)


def _at_one(x: str, scale: alt.Scale, theme: str) -> alt.Chart:
    base = alt.Chart(pd.DataFrame({"one": [1.0]}))
    line = base.mark_rule(color=LIMIT[theme], strokeWidth=1.5, strokeDash=[7, 4])
    at = alt.X("one:Q", scale=scale) if x == "x" else alt.Y("one:Q", scale=scale)
    return line.encode(x=at) if x == "x" else line.encode(y=at)


def factors(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """The factor of each constant with P10 to P90; the dashed line is what was assumed."""
    ink = INK[theme]
    scale = _log(*rows["low"], *rows["high"], 1.0)
    names = list(rows["constant"])
    base = alt.Chart(rows).encode(y=alt.Y("constant:N", sort=names, axis=None))
    axis = _axis("Factor on what was assumed", theme, format="~g")
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
        x=alt.X("low:Q", scale=scale, axis=axis), x2="high:Q", tooltip=tips
    )
    legend = _legend(theme)
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
    layers = (_at_one("x", scale, theme), bars, marks, _above(base, "constant:N", ink))
    return alt.layer(*layers).properties(height=HEAD_PX + ROW_PX * len(names))


def ratios(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """Forecast over measured of the held-out step; the band is 5% to either side."""
    ink = INK[theme]
    scale = _log(*rows["ratio"], 1 - NEAR, 1 + NEAR)
    names = list(dict.fromkeys(rows["result"]))
    band = (
        alt.Chart(pd.DataFrame({"low": [1 - NEAR], "high": [1 + NEAR]}))
        .mark_rect(color=FAINT[theme], opacity=0.22)
        .encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    )
    base = alt.Chart(rows).encode(y=alt.Y("result:N", sort=names, axis=None))
    axis = _axis("Forecast / measured", theme, format="~g")
    legend = _legend(theme)
    marks = base.mark_point(
        size=130, filled=True, opacity=1, stroke=ink, strokeWidth=1, yOffset=DOWN_PX
    ).encode(
        x=alt.X("ratio:Q", scale=scale, axis=axis),
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
            alt.Tooltip("ratio:Q", title="Forecast / measured", format=".3f"),
        ],
    )
    layers = (band, _at_one("x", scale, theme), marks, _above(base, "result:N", ink))
    return alt.layer(*layers).properties(height=HEAD_PX + ROW_PX * len(names))


def collectives(points: pd.DataFrame, lines: pd.DataFrame, *, of: str, theme: str) -> Drawn:
    """Measured sizes and the curve through them, both axes logarithmic. `of`: BUS or TIME."""
    ink = INK[theme]
    column, title = AXES[of]
    ops = list(dict.fromkeys(points["op"]))[: len(SHAPES)]
    x = alt.X(
        "bytes:Q",
        scale=_log(points["bytes"].min(), points["bytes"].max()),
        axis=_axis("Size of the message (bytes)", theme, format="~s"),
    )
    values = [*points[column], *lines[column]]
    y = alt.Y(f"{column}:Q", scale=_log(min(values), max(values)),
              axis=_axis(title, theme, format="~g"))  # fmt: skip
    colour = alt.Scale(domain=ops, range=list(PALETTE[: len(ops)]))
    legend = _legend(theme, columns=2)
    drawn = (
        alt.Chart(lines)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=x, y=y, color=alt.Color("op:N", scale=colour, legend=legend),
            strokeDash=alt.StrokeDash(
                "op:N", scale=alt.Scale(domain=ops, range=list(DASHES[: len(ops)])), legend=None
            ),
        )
    )  # fmt: skip
    dots = (
        alt.Chart(points)
        .mark_point(size=64, filled=True, opacity=1, stroke=ink, strokeWidth=0.8)
        .encode(
            x=x,
            y=y,
            color=alt.Color("op:N", scale=colour, legend=legend),
            shape=alt.Shape(
                "op:N", scale=alt.Scale(domain=ops, range=list(SHAPES[: len(ops)])), legend=legend
            ),
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
    """The factor of each constant over time."""
    ink = INK[theme]
    names = list(dict.fromkeys(rows["constant"]))
    data = rows.assign(at=pd.to_datetime(rows["at"], utc=True, format="ISO8601"))
    scale = _log(*rows["factor"], 1.0)
    x = alt.X("at:T", axis=_axis("Measured on", theme, format="%Y-%m-%d", tickCount=5))
    y = alt.Y("factor:Q", scale=scale, axis=_axis("Factor on what was assumed", theme, format="~g"))
    # More constants than colours: the shape and the dash of two of one colour differ.
    colours = [PALETTE[i % len(PALETTE)] for i in range(len(names))]
    shapes = [SHAPES[(i + i // len(PALETTE)) % len(SHAPES)] for i in range(len(names))]
    colour = alt.Scale(domain=names, range=colours)
    legend = _legend(theme, orient="bottom", columns=1)
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
            shape=alt.Shape(
                "constant:N", scale=alt.Scale(domain=names, range=shapes), legend=legend
            ),
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
    return alt.layer(_at_one("y", scale, theme), lines, dots).properties(
        height=HISTORY_PX + LEGEND_ROW_PX * len(names)
    )
