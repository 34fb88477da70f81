"""The charts of the Run page: measured against forecast, and an end that narrows."""

from __future__ import annotations

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document.chart_parts import DASHED, FAINT, INK, LIMIT, Drawn

HEIGHT_PX = 300
LINE = 2.2


def speed(rows: pd.DataFrame, *, low: float, middle: float, high: float, theme: str) -> Drawn:
    """Tokens/s over time. Grey: the forecast's P10 to P90; dashed: its P50."""
    scale = alt.Scale(
        domain=[0.9 * min(low, *rows["speed"]), 1.1 * max(high, *rows["speed"])], nice=False,
        zero=False,
    )  # fmt: skip
    y = alt.Y("speed:Q", scale=scale, axis=parts.axis("Tokens/s", theme, format="~s"))
    line = alt.Chart(rows).mark_line(color=parts.main_colour(theme), strokeWidth=LINE)
    drawn = line.encode(
        x=_x(theme), y=y,
        tooltip=[alt.Tooltip("hours:Q", title="Hours", format=".3~g"),
                 alt.Tooltip("speed:Q", title="Tokens/s", format=",.0f")],
    )  # fmt: skip
    layers = (
        parts.band("y", low, high, scale, theme),
        parts.rule("y", middle, scale, FAINT[theme]),
        drawn,
    )
    return alt.layer(*layers).properties(height=HEIGHT_PX)


def narrowing(
    rows: pd.DataFrame, *, of: str, title: str, forecast: float | None, theme: str
) -> Drawn:
    """The end or the cost as it was expected at each time: P50, and P10 to P90 as a band. The
    dashed line is the forecast."""
    names = [f"{of}_{q}" for q in ("p10", "p50", "p90")]
    given = [*rows[names[0]], *rows[names[2]], *([] if forecast is None else [forecast])]
    scale = alt.Scale(domain=[0.95 * min(given), 1.05 * max(given)], nice=False, zero=False)
    axis = (
        parts.usd_axis(theme, title) if of == "usd" else parts.axis(title, theme, format="~s")
    )  # fmt: skip
    base = alt.Chart(rows)
    y = alt.Y(f"{names[1]}:Q", scale=scale, axis=axis)
    tips = [alt.Tooltip("hours:Q", title="Hours", format=".3~g")] + [
        alt.Tooltip(f"{name}:Q", title=name[-3:].upper(), format=",.4~g") for name in names
    ]
    band = base.mark_area(color=parts.main_colour(theme), opacity=0.25).encode(
        x=_x(theme), y=alt.Y(f"{names[0]}:Q", scale=scale, axis=axis), y2=alt.Y2(f"{names[2]}:Q")
    )
    line = base.mark_line(color=INK[theme], strokeWidth=LINE).encode(x=_x(theme), y=y, tooltip=tips)
    layers = [band, line]
    if forecast is not None:
        layers.append(parts.rule("y", forecast, scale, LIMIT[theme], DASHED))
    return alt.layer(*layers).properties(height=HEIGHT_PX)


def _x(theme: str) -> alt.X:
    return alt.X("hours:Q", axis=parts.axis("Hours since the start", theme, format="~g"))
