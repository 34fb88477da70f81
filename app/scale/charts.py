"""The charts of when and how big: time and cost against the number of GPUs, and the best model
for a budget. Text has the theme's ink colour, and colour is never the only distinction.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document import format as fmt
from app.document.chart_parts import INK, LIMIT, Drawn, x_px
from app.document.durations import unit_of
from app.scale.document import DRAWN

PANEL_PX, CURVE_PX = 340, 340
KINDS = ("without failures", "expected", "P90")
DASHES = ((6, 4), (1, 0), (2, 2))
BILLIONS = "replace(format(datum.value, '~s'), 'G', 'B')"  # the SI format writes G for billion
GAP = 1.15


def against_count(
    points: pd.DataFrame,
    *,
    what: Literal["days", "usd"],
    chosen: int,
    limit: float | None,
    theme: str,
) -> Drawn:
    """Time, in the unit of its size, or dollars against the number of GPUs, on logarithmic axes: a
    line without failures, an expected line, a band up to P90, and the user's limit as a dashed
    line."""
    ink, main = INK[theme], parts.main_colour(theme)
    names = [f"{what}_steady", DRAWN[what], f"{DRAWN[what]}_p90"]
    rows = points.dropna(subset=names)
    limit_text = f"Budget {fmt.usd_short(limit)}"
    if what == "days":
        unit, limit_text = unit_of(rows[names[2]]), f"Deadline {fmt.days((limit or 0) * 24)}"
        rows = rows.assign(**{name: rows[name] * unit.per_day for name in names})
        limit = limit and limit * unit.per_day
    values = [*rows[names].to_numpy().ravel(), *([limit] if limit else [])]
    powers = [2**k for k in range(18) if rows["num_gpus"].min() <= 2**k <= rows["num_gpus"].max()]
    x = alt.X(
        "num_gpus:Q",
        scale=parts.log_scale(rows["num_gpus"], gap=GAP, base=2),
        axis=parts.axis("GPUs", theme, format=",d", values=powers or list(rows["num_gpus"])),
    )
    ticks, y_scale = parts.log_ticks(values), parts.log_scale(values, gap=GAP)
    if what == "usd":
        title, number = "Cost (USD)", "$,.3~s"
        y_axis = parts.usd_axis(theme, title, values=ticks)
    else:
        title, number = f"Time ({unit.name})", ",.3~r"
        y_axis = parts.axis(title, theme, format=",~g", values=ticks)
    y = alt.Y("value:Q", scale=y_scale, axis=y_axis)
    expected = alt.Y(f"{names[1]}:Q", scale=y_scale, axis=y_axis)
    tips = [
        alt.Tooltip("num_gpus:Q", title="GPUs", format=","),
        alt.Tooltip(f"{names[0]}:Q", title=f"{title}, without failures", format=number),
        alt.Tooltip(f"{names[1]}:Q", title=f"{title}, expected", format=number),
        alt.Tooltip(f"{names[2]}:Q", title=f"{title}, P90", format=number),
        alt.Tooltip("efficiency:Q", title="Efficiency", format=".0%"),
    ]
    lines = rows.melt(id_vars=["num_gpus"], value_vars=names, var_name="of")
    lines["kind"] = lines["of"].map(dict(zip(names, KINDS, strict=True)))
    band = (
        alt.Chart(rows)
        .mark_area(opacity=0.2, color=main)
        .encode(x=x, y=expected, y2=f"{names[2]}:Q")
    )
    drawn = (
        alt.Chart(lines)
        .mark_line(color=main, strokeWidth=2)
        .encode(
            x=x,
            y=y,
            strokeDash=alt.StrokeDash(
                "kind:N",
                scale=alt.Scale(domain=list(KINDS), range=[list(d) for d in DASHES]),
                legend=parts.legend(theme, symbolStrokeColor=main, symbolSize=400, columns=1),
            ),
        )
    )
    dots = (
        alt.Chart(rows)
        .mark_circle(size=45, color=main, opacity=1)
        .encode(x=x, y=expected, tooltip=tips)
    )
    layers: list[Any] = [band, drawn, dots]
    here = rows[rows["num_gpus"] == chosen]
    if not here.empty:
        ring = alt.Chart(here).mark_point(size=240, stroke=ink, strokeWidth=2.5, filled=False)
        layers.append(ring.encode(x=x, y=expected))
    if limit:
        base = alt.Chart(pd.DataFrame({"value": [limit], "text": [limit_text]}))
        rule = base.mark_rule(color=LIMIT[theme], strokeDash=[7, 4], strokeWidth=1.5)
        # At the right, more GPUs finish early and cost more: there is room above the line of a
        # deadline and below that of a budget.
        down = 12 if what == "usd" else -8
        text = base.mark_text(color=LIMIT[theme], align="right", dx=-4, dy=down, fontSize=12)
        layers += [rule.encode(y=y), text.encode(x=x_px("width"), y=y, text=alt.Text("text:N"))]
    return alt.layer(*layers).properties(height=PANEL_PX)


def optimal(curve: pd.DataFrame, own: pd.DataFrame, *, theme: str) -> Drawn:
    """Parameters against dollars, on logarithmic axes: one line per law, the own run as a mark."""
    ink = INK[theme]
    laws = list(dict.fromkeys(curve["law"]))
    x = alt.X(
        "usd:Q",
        scale=parts.log_scale(curve["usd"], gap=GAP),
        axis=parts.usd_axis(theme, values=parts.log_ticks(curve["usd"])),
    )
    y = alt.Y(
        "parameters:Q",
        scale=parts.log_scale(curve["parameters"], *own["parameters"], gap=GAP),
        axis=parts.axis(
            "Parameters of the best model",
            theme,
            labelExpr=BILLIONS,
            values=parts.log_ticks(curve["parameters"]),
        ),
    )
    tips = [
        alt.Tooltip("law:N", title="Law"),
        alt.Tooltip("usd:Q", title="Dollars", format="$,.3~s"),
        alt.Tooltip("parameters_text:N", title="Parameters"),
        alt.Tooltip("tokens_text:N", title="Tokens"),
        alt.Tooltip("tokens_per_parameter:Q", title="Tokens a parameter", format=".3~r"),
        alt.Tooltip("loss:Q", title="Loss", format=".3f"),
        alt.Tooltip("usd_per_trillion_tokens:Q", title="Dollars per 1T tokens", format="$,.3~s"),
    ]
    legend = parts.legend(theme, columns=1)
    colour = alt.Color("law:N", scale=parts.colours(laws), legend=legend)
    shape = alt.Shape("law:N", scale=parts.shapes(laws), legend=legend)
    base = alt.Chart(curve)
    line = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour)
    dots = base.mark_point(size=60, filled=True, opacity=1).encode(
        x=x, y=y, tooltip=tips, color=colour, shape=shape
    )
    run = alt.Chart(own)
    mark = run.mark_point(shape="diamond", size=160, filled=True, color=ink, opacity=1)
    # Keep the label away from the lines, which rise to the right.
    is_low = bool((own["parameters"].max() < _at(curve, own)).all())
    name = run.mark_text(
        color=ink, fontWeight="bold", fontSize=12, align="left" if is_low else "right",
        dx=10 if is_low else -10, dy=10 if is_low else -8,
    )  # fmt: skip
    return alt.layer(
        line,
        dots,
        mark.encode(x=x, y=y, tooltip=tips[1:4]),
        name.encode(x=x, y=y, text=alt.Text("name:N")),
    ).properties(height=CURVE_PX)


def _at(curve: pd.DataFrame, own: pd.DataFrame) -> pd.Series:
    """Parameters by each law at the dollars nearest to the run's."""
    far = (curve["usd"] / own["usd"].max()).map(math.log).abs()
    return curve.assign(far=far).sort_values("far").groupby("law")["parameters"].first()
