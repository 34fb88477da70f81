"""Charts of speed: from the ideal step to the actual one, and scaling with GPUs. Text has the
theme's colour, and colour is never the only carrier of a value."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from app.document.chart_parts import FAINT, INK, PALETTE, Drawn, above, axis, legend, y_px
from app.plan.part_charts import AXIS_PX, BAR_DOWN_PX, BAR_PX, ROW_PX

KINDS = {"ideal": "ideal", "loss": "loss", "gain": "gain", "whole": "whole step"}
LABEL_ROOM = 1.45  # times the longest bar, so that its label fits
PANEL_PX = 320
GAP, ROOM = 1.2, 1.8  # beyond the data; the last label needs more room
LEGEND_PX = 50
LINEAR, BEST = "linear", "best layout"
BILLIONS = "replace(format(datum.value, '~s'), 'G', 'B')"  # B for billions, where SI has G


def waterfall(parts: pd.DataFrame, *, theme: str) -> Drawn:
    """The ideal step, each loss and the actual step: one bar per row, starting where the bar above
    ends. Names are above their bars, to fit a narrow screen."""
    ink = INK[theme]
    end = float(parts[["start_s", "end_s"]].max().max()) or 1.0
    scale = alt.Scale(domain=[0, end * LABEL_ROOM], nice=False)
    colours = [PALETTE[2], PALETTE[1], PALETTE[4], FAINT[theme]]
    kinds = [k for k in KINDS if k in set(parts["kind"])]
    rows = parts.assign(is_a=[KINDS[k] for k in parts["kind"]])
    base = alt.Chart(rows).encode(y=alt.Y("part:N", sort=list(parts["part"]), axis=None))
    bars = base.mark_bar(
        height=BAR_PX, yOffset=BAR_DOWN_PX, cornerRadius=1, stroke=ink, strokeWidth=0.6
    ).encode(
        x=alt.X("start_s:Q", scale=scale, axis=axis("Seconds of one step", theme)),
        x2=alt.X2("end_s:Q"),
        color=alt.Color(
            "is_a:N",
            scale=alt.Scale(
                domain=[KINDS[k] for k in kinds], range=[colours[[*KINDS].index(k)] for k in kinds]
            ),
            legend=legend(theme, symbolType="square", symbolStrokeWidth=0),
        ),
        tooltip=[alt.Tooltip("part:N", title="Part"), alt.Tooltip("text:N", title="Time")],
    )
    times = base.mark_text(align="left", dx=6, dy=BAR_DOWN_PX, color=ink, fontSize=12).encode(
        x=alt.X("far_s:Q", scale=scale), text=alt.Text("text:N")
    ).transform_calculate(far_s="max(datum.start_s, datum.end_s)")  # fmt: skip
    names = above(base, "part:N", theme, down_px=BAR_DOWN_PX)
    height = AXIS_PX + LEGEND_PX + ROW_PX * len(parts)
    return alt.layer(bars, times, names).properties(height=height)


def throughput(points: pd.DataFrame, *, chosen: int, theme: str) -> Drawn:
    """Tokens/s against GPUs, on log2 axes, with the line of linear scaling."""
    values = [*points["tokens_per_s"], *points["linear_tokens_per_s"]]
    scale = alt.Scale(type="log", base=2, domain=[min(values) / GAP, max(values) * GAP], nice=False)
    y = alt.Y(
        "tokens_per_s:Q",
        scale=scale,
        axis=axis(
            "Tokens/s", theme, labelExpr=BILLIONS, values=_thousands(values), labelOverlap="greedy"
        ),
    )
    linear = alt.Y("linear_tokens_per_s:Q", scale=scale)
    return _against_gpus(points, y, linear, chosen=chosen, theme=theme)


def efficiency(points: pd.DataFrame, *, chosen: int, theme: str) -> Drawn:
    """Tokens/s per GPU, relative to the fewest GPUs: the loss that tokens/s alone hides."""
    rows = points.assign(linear=1.0)
    top = max(float(points["efficiency"].max()) * 1.08, 1.08)
    scale = alt.Scale(domain=[0, top], nice=False)
    y = alt.Y("efficiency:Q", scale=scale, axis=axis("Parallel efficiency (%)", theme,
              labelExpr="round(datum.value * 100)", tickCount=6))  # fmt: skip
    return _against_gpus(rows, y, alt.Y("linear:Q", scale=scale), chosen=chosen, theme=theme)


def _against_gpus(
    points: pd.DataFrame, y: alt.Y, linear: alt.Y, *, chosen: int, theme: str
) -> Drawn:
    ink, main = INK[theme], PALETTE[0 if theme == "light" else 4]
    gpus = [float(n) for n in points["num_gpus"]]
    x = alt.X(
        "num_gpus:Q",
        scale=alt.Scale(type="log", base=2, domain=[min(gpus) / GAP, max(gpus) * ROOM], nice=False),
        axis=axis("GPUs", theme, format=",d", values=_powers(gpus), labelOverlap="greedy"),
    )
    kinds = alt.StrokeDash(
        "kind:N",
        scale=alt.Scale(domain=[BEST, LINEAR], range=[[1, 0], [6, 4]]),
        legend=legend(theme, symbolStrokeColor=INK[theme], symbolStrokeWidth=1.5, symbolSize=400),
    )
    tips = [
        alt.Tooltip("num_gpus:Q", title="GPUs", format=","),
        alt.Tooltip("tokens_per_s:Q", title="Tokens/s", format=",.3~s"),
        alt.Tooltip("efficiency:Q", title="Efficiency", format=".1%"),
        alt.Tooltip("layout:N", title="Layout"),
    ]
    base = alt.Chart(points)
    layers: list[Any] = [
        base.transform_calculate(kind=f"'{LINEAR}'")
        .mark_line(color=FAINT[theme], strokeWidth=1.5)
        .encode(x=x, y=linear, strokeDash=kinds),
        base.transform_calculate(kind=f"'{BEST}'")
        .mark_line(color=main, strokeWidth=2)
        .encode(x=x, y=y, strokeDash=kinds),
        base.mark_circle(size=45, color=main, opacity=1).encode(x=x, y=y, tooltip=tips),
    ]
    here = points[points["num_gpus"] == chosen]
    if not here.empty:
        # Labels are above the panel, where no line crosses them; a thin rule leads to the point.
        place = math.log(chosen / min(gpus)) / (math.log(max(gpus) / min(gpus)) or 1.0)
        mark = alt.Chart(here).encode(x=x, y=y)
        layers += [
            mark.mark_rule(stroke=ink, strokeWidth=1, strokeDash=[2, 3], opacity=0.7).encode(
                y2=alt.value(0)
            ),
            mark.mark_point(size=260, filled=False, stroke=ink, strokeWidth=2.5, opacity=1),
            alt.Chart(here).mark_text(
                text="You are here", color=ink, fontWeight="bold", fontSize=12, baseline="bottom",
                align="left" if place < 0.7 else "right",
            ).encode(x=x, y=y_px(-3)),
        ]  # fmt: skip
    return alt.layer(*layers).properties(height=PANEL_PX)


def _thousands(values: list[float]) -> list[float]:
    """Doublings of 1, 1k, 1M and so on in a range: easier to read than powers of two."""
    found = [1000.0**n * 2**k for n in range(5) for k in range(10)]
    return [v for v in found if min(values) <= v <= max(values)] or [min(values)]


def _powers(values: list[float]) -> list[int]:
    """The powers of two in a range."""
    found = [2**k for k in range(60) if min(values) <= 2**k <= max(values)]
    return found or [round(min(values))]
