"""The charts of the Accuracy page, drawn from the columns of app/accuracy/document.py.

Text takes the theme's text colour. A label or a shape always accompanies a colour.
"""

from __future__ import annotations

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document import format as fmt
from app.document.chart_parts import INK, LIMIT, PALETTE, SHAPES, Drawn, x_px
from core.evidence.accuracy import NEAR
from core.evidence.coverage import CLASS_BAND, NOMINAL

OTHER = "other"
NAMED = 200  # most runs that the chart names by run id; the file names all
RATIO_PX, COVERAGE_PX, CLASS_ROW_PX = 560, 96, 24
TICKS = (0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10)
GAP = 1.15  # how far the axes go beyond the data


def named(labels: pd.Series) -> tuple[list[str], list[str]]:
    """The legend's labels and the label of each row.

    There are at most as many labels as shapes; rarer labels become `OTHER`.
    """
    common = list(labels.value_counts().index)
    kept = common if len(common) <= len(SHAPES) else common[: len(SHAPES) - 1]
    rows = [label if label in kept else OTHER for label in labels]
    return [*kept, *([OTHER] if len(kept) < len(common) else [])], rows


def _shortened(source: str) -> str:
    """A source without version, file and section.

    >>> _shortened("NVIDIA-NeMo/Megatron-Bridge@067f987d docs/performance-summary.md §26.08")
    'NVIDIA-NeMo/Megatron-Bridge'
    >>> _shortened("Narayanan et al. 2021 (arXiv 2104.04473) Table 1")
    'Narayanan et al. 2021'
    """
    name = source.split()[0].split("@")[0]
    return name if "/" in name else source.split(" (")[0].split(" Table")[0]


def ratios(points: pd.DataFrame, *, kind: str, title: str, theme: str) -> Drawn:
    """A scatter plot of measured / predicted against predicted, on log axes, one mark per run."""
    domain, names = named(points[kind])
    ratio, measured = "measured_over_predicted", "measured_tokens_per_s_per_gpu"
    predicted = "predicted_tokens_per_s_per_gpu"
    shown = [predicted, ratio, "inside_p10_p90"]
    run, source = points["run_id"], points["source"]
    if len(points) > NAMED:  # shorter where there are many
        run = points["model"] + " on " + points["num_gpus"].map(fmt.count) + " GPUs"
        source = source.map(_shortened)
    data = points[shown].assign(run=run, source=source, label=names)
    low, high = 1 / (1 + NEAR), 1 / (1 - NEAR)
    y_scale = parts.log_scale(data[ratio], low, high, gap=GAP)
    ticks = parts.log_ticks(data[predicted], most=12)
    x_axis = parts.axis("Predicted tokens/s per GPU", theme, format="~s", values=ticks)
    y_axis = parts.axis("Measured / predicted", theme, values=list(TICKS), format="~g")
    near = parts.band("y", low, high, y_scale, theme)
    exact = parts.rule("y", 1.0, y_scale, INK[theme], [1, 0])
    text = (
        alt.Chart(pd.DataFrame({"high": [high], "text": [f"error within {NEAR:.0%}"]}))
        .mark_text(color=INK[theme], align="left", baseline="bottom", dx=4, dy=-4, fontSize=12)
        .encode(x=x_px(0), y=alt.Y("high:Q", scale=y_scale), text=alt.Text("text:N"))
    )
    legend = parts.legend(theme, title=title, columns=2, labelLimit=150)
    dots = (
        alt.Chart(data)
        .mark_point(size=46, filled=True, opacity=0.85, stroke=INK[theme], strokeWidth=0.4)
        .encode(
            x=alt.X(f"{predicted}:Q", scale=parts.log_scale(data[predicted], gap=GAP), axis=x_axis),
            y=alt.Y(f"{ratio}:Q", scale=y_scale, axis=y_axis),
            color=alt.Color("label:N", scale=parts.colours(domain), legend=legend),
            shape=alt.Shape("label:N", scale=parts.shapes(domain), legend=legend),
            tooltip=[
                alt.Tooltip("run:N", title="Run"),
                alt.Tooltip("label:N", title=title),
                alt.Tooltip(f"{measured}:Q", title="Measured (tokens/s per GPU)", format=",.0f"),
                alt.Tooltip(f"{predicted}:Q", title="Predicted (tokens/s per GPU)", format=",.0f"),
                alt.Tooltip(f"{ratio}:Q", title="Measured / predicted", format=".2f"),
                alt.Tooltip("inside_p10_p90:N", title="Inside P10-P90"),
                alt.Tooltip("source:N", title="Source"),
            ],
        )
        .transform_calculate(**{measured: f"datum.{predicted} * datum.{ratio}"})
    )
    return alt.layer(near, exact, dots, text).properties(height=RATIO_PX)


def coverage(classes: pd.DataFrame, *, theme: str) -> Drawn:
    """Share of runs inside P10 to P90 in each class, with exact 90% bounds."""
    order = list(classes["Class"])
    data = classes.rename(columns={"Class": "label", "Inside P10-P90": "share"})
    ink = INK[theme]
    y = alt.Y(
        "label:N", sort=order, axis=parts.axis(None, theme, labelOverlap=False, labelLimit=180)
    )
    scale = alt.Scale(domain=[0, 1], nice=False)
    x_axis = parts.axis("Inside P10 to P90", theme, format=".0%", tickCount=5)
    band = parts.band("x", *CLASS_BAND, scale, theme)
    aim = parts.rule("x", NOMINAL, scale, LIMIT[theme])
    base = alt.Chart(data).encode(y=y)
    bounds = base.mark_rule(color=ink, strokeWidth=1.5).encode(
        x=alt.X("From:Q", scale=scale), x2=alt.X2("To:Q")
    )
    kinds = ["honest", "too wide", "too narrow"]
    legend = parts.legend(theme, labelLimit=200)
    colours, marks = [PALETTE[i] for i in (2, 4, 5)], ["circle", "square", "triangle-down"]
    dots = base.mark_point(size=110, filled=True, opacity=1, stroke=ink, strokeWidth=1).encode(
        x=alt.X("share:Q", scale=scale, axis=x_axis),
        color=alt.Color("Interval:N", scale=alt.Scale(domain=kinds, range=colours), legend=legend),
        shape=alt.Shape("Interval:N", scale=alt.Scale(domain=kinds, range=marks), legend=legend),
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
