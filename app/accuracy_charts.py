"""The charts of the Accuracy page, of ready columns of app/accuracy_tables.py.

As in app/charts.py: text is drawn in the ink of the theme, and colour is never alone.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.charts import FAINT, INK, LIMIT, PALETTE, Drawn
from core.accuracy import NEAR
from core.coverage import CLASS_BAND, NOMINAL

OTHER = "other"
# All of one size: a dash or a wedge is lost among eight hundred marks.
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down",
          "triangle-right", "triangle-left")  # fmt: skip
RATIO_PX, COVERAGE_PX, CLASS_ROW_PX = 560, 96, 24
TICKS = (0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10)
GAP = 1.15  # how far the axes go beyond the data


def _axis(title: str | None, theme: str, **more: Any) -> alt.Axis:
    given = {"labelOverlap": "greedy", "titleLimit": 400, "gridOpacity": 0.4, **more}
    return alt.Axis(title=title, labelColor=INK[theme], titleColor=INK[theme], **given)


def _log(values: pd.Series, *always: float) -> alt.Scale:
    low, high = min([*values, *always]), max([*values, *always])
    return alt.Scale(type="log", domain=[low / GAP, high * GAP], nice=False)


def named(labels: pd.Series) -> tuple[list[str], list[str]]:
    """The most frequent labels, at most as many as there are shapes, and each row's one."""
    common = list(labels.value_counts().index)
    kept = common if len(common) <= len(SHAPES) else common[: len(SHAPES) - 1]
    rows = [label if label in kept else OTHER for label in labels]
    return [*kept, *([OTHER] if len(kept) < len(common) else [])], rows


def ratios(points: pd.DataFrame, *, kind: str, title: str, theme: str) -> Drawn:
    """Measured over predicted against predicted, both logarithmic; one mark a run."""
    domain, names = named(points[kind])
    shown = ["run_id", "model", "measured_tokens_per_s_per_gpu", "predicted_tokens_per_s_per_gpu",
             "measured_over_predicted", "inside_p10_p90"]  # fmt: skip
    data = points[shown].assign(label=names)
    ratio = "measured_over_predicted"
    y_scale = _log(data[ratio], 1 / (1 + NEAR), 1 / (1 - NEAR))
    x = alt.X(
        "predicted_tokens_per_s_per_gpu:Q",
        scale=_log(data["predicted_tokens_per_s_per_gpu"]),
        axis=_axis("Predicted tokens/s per GPU", theme, format="~s"),
    )
    y = alt.Y(
        f"{ratio}:Q",
        scale=y_scale,
        axis=_axis("Measured / predicted", theme, values=list(TICKS), format="~g"),
    )
    band = pd.DataFrame({"low": [1 / (1 + NEAR)], "high": [1 / (1 - NEAR)]})
    near = (
        alt.Chart(band)
        .mark_rect(color=FAINT[theme], opacity=0.18)
        .encode(y=alt.Y("low:Q", scale=y_scale), y2="high:Q")
    )
    exact = (
        alt.Chart(pd.DataFrame({"one": [1.0]}))
        .mark_rule(color=INK[theme], strokeWidth=1)
        .encode(y=alt.Y("one:Q", scale=y_scale))
    )
    text = (
        alt.Chart(band.assign(text=[f"error within {NEAR:.0%}"]))
        .mark_text(color=INK[theme], align="left", baseline="bottom", dx=4, dy=-4, fontSize=12)
        .encode(x=alt.value(0), y=alt.Y("high:Q", scale=y_scale), text="text:N")
    )
    legend = alt.Legend(
        title=title, labelColor=INK[theme], titleColor=INK[theme], orient="top", columns=2,
        rowPadding=3, labelLimit=150, symbolStrokeWidth=1,
    )  # fmt: skip
    count = len(domain)
    dots = (
        alt.Chart(data)
        .mark_point(size=46, filled=True, opacity=0.85, stroke=INK[theme], strokeWidth=0.4)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "label:N",
                scale=alt.Scale(domain=domain, range=list(PALETTE[:count])),
                legend=legend,
            ),
            shape=alt.Shape(
                "label:N",
                scale=alt.Scale(domain=domain, range=list(SHAPES[:count])),
                legend=legend,
            ),
            tooltip=[
                alt.Tooltip("run_id:N", title="Run"),
                alt.Tooltip("model:N", title="Model"),
                alt.Tooltip("label:N", title=title),
                alt.Tooltip(
                    "measured_tokens_per_s_per_gpu:Q", title="Measured (tokens/s per GPU)",
                    format=",.0f",
                ),
                alt.Tooltip(
                    "predicted_tokens_per_s_per_gpu:Q", title="Predicted (tokens/s per GPU)",
                    format=",.0f",
                ),
                alt.Tooltip(f"{ratio}:Q", title="Measured / predicted", format=".2f"),
                alt.Tooltip("inside_p10_p90:N", title="Inside P10-P90"),
            ],
        )
    )  # fmt: skip
    return alt.layer(near, exact, dots, text).properties(height=RATIO_PX)


def coverage(classes: pd.DataFrame, *, theme: str) -> Drawn:
    """Coverage of P10-P90 of the classes of one kind, with exact 90% bounds."""
    order = list(classes["Class"])
    data = classes.rename(columns={"Class": "label", "Inside P10-P90": "share"})
    ink = INK[theme]
    y = alt.Y("label:N", sort=order, axis=_axis(None, theme, labelOverlap=False, labelLimit=180))
    scale = alt.Scale(domain=[0, 1], nice=False)
    x = alt.X(
        "share:Q", scale=scale, axis=_axis("Inside P10 to P90", theme, format=".0%", tickCount=5)
    )
    band = (
        alt.Chart(pd.DataFrame({"low": [CLASS_BAND[0]], "high": [CLASS_BAND[1]]}))
        .mark_rect(color=FAINT[theme], opacity=0.22)
        .encode(x=alt.X("low:Q", scale=scale), x2="high:Q")
    )
    aim = (
        alt.Chart(pd.DataFrame({"aim": [NOMINAL]}))
        .mark_rule(color=LIMIT[theme], strokeDash=[7, 4], strokeWidth=1.5)
        .encode(x=alt.X("aim:Q", scale=scale))
    )
    base = alt.Chart(data).encode(y=y)
    bounds = base.mark_rule(color=ink, strokeWidth=1.5).encode(
        x=alt.X("From:Q", scale=scale), x2="To:Q"
    )
    kinds = ["honest", "too wide", "too narrow"]
    legend = alt.Legend(
        title=None, labelColor=ink, orient="top", columns=3, symbolStrokeWidth=1, labelLimit=200
    )
    colours = [PALETTE[2], PALETTE[4], PALETTE[5]]
    dots = base.mark_point(size=110, filled=True, opacity=1, stroke=ink, strokeWidth=1).encode(
        x=x,
        color=alt.Color("Interval:N", scale=alt.Scale(domain=kinds, range=colours), legend=legend),
        shape=alt.Shape(
            "Interval:N",
            scale=alt.Scale(domain=kinds, range=["circle", "square", "triangle-down"]),
            legend=legend,
        ),
        tooltip=[
            alt.Tooltip("label:N", title="Class"),
            alt.Tooltip("Runs:Q", title="Runs", format=","),
            alt.Tooltip("share:Q", title="Inside P10 to P90", format=".0%"),
            alt.Tooltip("From:Q", title="At least", format=".0%"),
            alt.Tooltip("To:Q", title="At most", format=".0%"),
            alt.Tooltip("Interval:N", title="Interval"),
        ],
    )
    return alt.layer(band, aim, bounds, dots).properties(
        height=COVERAGE_PX + CLASS_ROW_PX * len(order)
    )
