"""What every chart is made of: text colours and colours, axes, legends, scales, and small marks.

Text marks do not follow Streamlit's theme, so every chart gets the text colour of the page. Colour
is never the only signal: shape, dash, order or text repeats it. A channel given as a string costs
Altair five milliseconds, one given as an object (alt.Text, alt.X2, `x_px`) next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

Drawn = alt.LayerChart | alt.FacetChart  # the declared return type of alt.layer

INK = {"light": "#17202A", "dark": "#F2F5F8"}
FAINT = {"light": "#6B7785", "dark": "#93A1B0"}
LIMIT = {"light": "#B23A00", "dark": "#FF9A5C"}
# Okabe and Ito, https://jfly.uni-koeln.de/color/: distinct with every common colour blindness.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
# All of similar size: a dash or a wedge is lost among eight hundred marks.
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down",
          "triangle-right", "triangle-left")  # fmt: skip
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 4], [1, 3], [10, 2, 2, 2])
DASHED = [7, 4]  # for limits and assumed values
CLOSE = {"labelPadding": 6, "titlePadding": 6}  # an axis closer than Streamlit's theme has it
GAP = 1.12  # how far a logarithmic axis goes beyond the data, so that labels stay inside
TEXT_PX = 12


def main_colour(theme: str) -> str:
    """The blue of single-colour charts, in the shade that the background needs."""
    return PALETTE[0 if theme == "light" else 4]


def axis(title: str | None, theme: str, **more: Any) -> alt.Axis:
    """An axis in the text colour of the page; its title names the unit."""
    given = {"labelOverlap": "greedy", "titleLimit": 400, "gridOpacity": 0.4, **more}
    if title is None:  # names of rows: every one is shown, including the first and the last
        given.setdefault("labelFlush", False)
    return alt.Axis(title=title, labelColor=INK[theme], titleColor=INK[theme], **given)


def legend(theme: str, **more: Any) -> alt.Legend:
    """A legend on top in the text colour of the page, three names per row."""
    given: dict[str, Any] = {
        "title": None, "orient": "top", "columns": 3, "labelLimit": 260, "rowPadding": 3,
        "symbolStrokeWidth": 1, "symbolOpacity": 1,
    }  # fmt: skip
    return alt.Legend(labelColor=INK[theme], titleColor=INK[theme], **{**given, **more})


def log_scale(values: Iterable[float], *always: float, gap: float = GAP, **more: Any) -> alt.Scale:
    """A logarithmic scale slightly wider than the given values."""
    given = [float(v) for v in (*values, *always)]
    return alt.Scale(type="log", domain=[min(given) / gap, max(given) * gap], nice=False, **more)


def usd_axis(theme: str, title: str = "Cost (USD)", **more: Any) -> alt.Axis:
    """An axis of dollars: $0, $0.5, $400k, $1.2M, $3B."""
    # SI writes G for billions, and m for thousandths.
    large = "datum.value < 1 ? format(datum.value, '$,.2~r') : replace(datum.label, 'G', 'B')"
    text = f"datum.value == 0 ? '$0' : {large}"
    return axis(title, theme, **{"format": "$~s", "labelExpr": text, **more})


def log_labels(channel: str, text: str) -> str:
    """An expression of Vega that names 1, 2 and 5 of each power of ten of a logarithmic axis, and
    every tick where it spans less than one: on its own, Vega leaves 800 and 900 unnamed there.

    `channel` is "x" or "y", `text` the expression of a name.
    """
    low, high = f"domain('{channel}')[0]", f"domain('{channel}')[1]"
    digit = "round(datum.value / pow(10, floor(log(datum.value) / LN10 + 1e-6)))"
    return f"{high} < 10 * {low} || indexof([1, 2, 5], {digit}) >= 0 ? {text} : ''"


def log_ticks(values: Iterable[float], most: int = 7) -> list[float]:
    """Round ticks of a logarithmic axis, as many as fit: 1 2 5 10, or 1 3 10, or powers of ten.

    >>> log_ticks([8, 300])
    [10.0, 20.0, 50.0, 100.0, 200.0]
    """
    given = [float(v) for v in values]
    low, high = min(given) / GAP, max(given) * GAP
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in ((1, 2, 5), (1, 3), (1,)):
        found = [s * 10.0**k for k in powers for s in steps if low <= s * 10.0**k <= high]
        if len(found) <= most:
            break
    return found


def colours(names: Sequence[str]) -> alt.Scale:
    """One colour per name, from the start of the palette; reused if there are more names."""
    return alt.Scale(
        domain=list(names), range=[PALETTE[i % len(PALETTE)] for i in range(len(names))]
    )


def shapes(names: Sequence[str]) -> alt.Scale:
    """One shape per name; two names with one colour have different shapes."""
    places = [(i + i // len(PALETTE)) % len(SHAPES) for i in range(len(names))]
    return alt.Scale(domain=list(names), range=[SHAPES[i] for i in places])


def dashes(names: Sequence[str]) -> alt.Scale:
    """One dash pattern per name; two names with one colour have different patterns."""
    places = [(i + i // len(PALETTE)) % len(DASHES) for i in range(len(names))]
    return alt.Scale(domain=list(names), range=[DASHES[i] for i in places])


def x_px(px: float | str) -> alt.XValue:
    """A horizontal position in pixels, or "width"."""
    return alt.XValue(px)  # type: ignore[no-untyped-call]


def y_px(px: float) -> alt.YValue:
    """A vertical position in pixels."""
    return alt.YValue(px)  # type: ignore[no-untyped-call]


def y2_px(px: float) -> alt.Y2Value:
    """The other end of a vertical span, in pixels."""
    return alt.Y2Value(px)  # type: ignore[no-untyped-call]


def above(rows: alt.Chart, name: str, theme: str, *, down_px: int) -> alt.Chart:
    """The name of each row at the left, above its mark, which is `down_px` below the middle. This
    leaves a narrow screen room for both."""
    text = rows.mark_text(align="left", dx=2, dy=-down_px, color=INK[theme], fontSize=TEXT_PX)
    return text.encode(x=x_px(0), text=alt.Text(name))


def rule(
    x_or_y: str, at: float, scale: alt.Scale, colour: str, dash: list[int] | None = None
) -> alt.Chart:
    """A line across the chart at one value of an axis."""
    line = alt.Chart(pd.DataFrame({"at": [at]})).mark_rule(
        color=colour, strokeWidth=1.5, strokeDash=DASHED if dash is None else dash
    )
    if x_or_y == "x":
        return line.encode(x=alt.X("at:Q", scale=scale))
    return line.encode(y=alt.Y("at:Q", scale=scale))


def band(x_or_y: str, low: float, high: float, scale: alt.Scale, theme: str) -> alt.Chart:
    """A grey band between two values of an axis."""
    area = alt.Chart(pd.DataFrame({"low": [low], "high": [high]})).mark_rect(
        color=FAINT[theme], opacity=0.2
    )
    if x_or_y == "x":
        return area.encode(x=alt.X("low:Q", scale=scale), x2=alt.X2("high:Q"))
    return area.encode(y=alt.Y("low:Q", scale=scale), y2=alt.Y2("high:Q"))
