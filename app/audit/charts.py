"""The chart of the Audit page: a claim against peak, best published run and forecast.

Text has the theme's ink colour, and every colour also has its own shape.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from app.audit.audit import Audit
from app.audit.speed import Speed, tflops
from app.document import chart_parts as parts
from app.document import format as fmt
from app.document.chart_parts import PALETTE, Drawn

CLAIM, BEST, PEAK, MIDDLE = "the claim", "best published", "dense peak", "our forecast (P50)"
ROW_PX, AROUND_PX = 44, 110  # height of one precision; of legend and axis
SHAPES = {CLAIM: "diamond", BEST: "circle", PEAK: "square", MIDDLE: "triangle-up"}
COLOURS = {
    CLAIM: PALETTE[5], BEST: PALETTE[2], PEAK: PALETTE[3], MIDDLE: PALETTE[0],
}  # fmt: skip


def speed_rows(audit: Audit) -> pd.DataFrame:
    """One row per mark: TFLOP/s per GPU with causal attention; the forecast has P10 and P90."""
    return pd.DataFrame([row for s in audit.speeds for row in _rows(s)])


def _rows(s: Speed) -> list[dict[str, object]]:
    marks: list[tuple[str, float, float | None, float | None]] = [(PEAK, s.peak, None, None)]
    if s.forecast is not None:
        per_token = s.flops_per_s / s.claim.rate
        p10, p50, p90 = (x * per_token for x in (s.forecast.p10, s.forecast.p50, s.forecast.p90))
        marks.append((MIDDLE, p50, p10 / 1e12, p90 / 1e12))
    if s.best is not None:
        marks.append((BEST, s.best.flops_per_s, None, None))
    marks.append((CLAIM, s.flops_per_s, None, None))  # last, so that it is drawn on top
    return [
        {
            "precision": s.precision, "mark": mark, "tflop_per_s": x / 1e12, "p10": low,
            "p90": high, "shown": tflops(x),
        }
        for mark, x, low, high in marks
    ]  # fmt: skip


def speeds(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """One line per precision, on a logarithmic axis."""
    order = list(rows["precision"].unique())
    y_axis = parts.axis(None, theme, labelFontSize=13, labelOverlap=False)
    y = alt.Y("precision:N", sort=order, axis=y_axis)
    scale = alt.Scale(type="log", nice=False, padding=16)
    x_axis = parts.axis("TFLOP/s per GPU, with causal attention", theme, format="~g")
    x = alt.X("tflop_per_s:Q", scale=scale, axis=x_axis)
    bars = (
        alt.Chart(rows[rows["mark"] == MIDDLE])
        .mark_bar(height=10, opacity=0.4, color=COLOURS[MIDDLE])
        .encode(
            y=y,
            x=alt.X("p10:Q", scale=scale),
            x2=alt.X2("p90:Q"),
            tooltip=[
                alt.Tooltip(f"{p}:Q", title=f"{p.upper()}, TFLOP/s", format=",.3~r")
                for p in ("p10", "p90")
            ],
        )
    )
    points = (
        alt.Chart(rows)
        .mark_point(size=130, filled=True, opacity=1)
        .encode(
            y=y,
            x=x,
            shape=alt.Shape(
                "mark:N",
                scale=alt.Scale(domain=list(SHAPES), range=list(SHAPES.values())),
                legend=parts.legend(theme, labelLimit=200, columns=2),
            ),
            color=alt.Color(
                "mark:N", scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values()))
            ),
            tooltip=[
                alt.Tooltip("precision:N", title="Precision"),
                alt.Tooltip("mark:N", title="What"),
                alt.Tooltip("shown:N", title="Per GPU"),
            ],
        )
    )
    return alt.layer(bars, points).properties(height=ROW_PX * len(order) + AROUND_PX)


def speeds_sentence(audit: Audit) -> str:
    """The chart in words."""
    texts = [
        f"{s.precision}: the claim's {tflops(s.flops_per_s)} against a dense peak of "
        f"{tflops(s.peak)}"
        + (f", {tflops(s.best.flops_per_s)} of the best published run" if s.best else "")
        + (f", a forecast of {fmt.count(s.forecast.p50)} tokens/s" if s.forecast else "")
        for s in audit.speeds
    ]
    return f"TFLOP/s per GPU of the claim, peak, best run and forecast. {'; '.join(texts)}."
