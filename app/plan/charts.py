"""Charts of a plan. Each takes a table of app/plan/document.py and returns an Altair chart.

Text marks do not follow Streamlit's theme, so every chart gets the page's ink colour. Colour is
never the only distinction: shape, order or text repeats it.
"""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd
from altair.utils.schemapi import debug_mode

from app.document import chart_parts as parts
from app.document.chart_files import BACKGROUND
from app.document.chart_parts import DASHED, FAINT, INK, LIMIT, TEXT_PX, Drawn
from app.document.durations import unit_of

Place = dict[str, float]  # days and usd
checked = debug_mode  # `with checked(False)`: charts are built in half the time

OTHER = "other GPUs"
IN_DOUBT = "price past its life or of low quality"
QUOTE = "your quote"
# Five points, in the unit square of a Vega shape; no GPU has it.
STAR = (
    "M0,-1.3L0.31,-0.42L1.24,-0.4L0.5,0.16L0.76,1.05L0,0.52L-0.76,1.05L-0.5,0.16L-1.24,-0.4"
    "L-0.31,-0.42Z"
)
PICK = "pick"  # name of the selection made by a click on the frontier
HERE = "here"  # name of the marker's data
PARETO_PX = 226  # height of the whole chart: plot, axis and legend
DOUBTED_PX = 34  # the legend below them
# Of two names: more are cut off in a narrow window. Above two rows the plot gives way, so that the
# chart ends on the first screen.
LEGEND_ROW_PX = 19
MEMORY_PX = 152
STEP_PX = 52
ROW_PX, BAR_PX, BAR_DOWN_PX = 34, 12, 8  # one row: a name with a bar beneath it
GAP = 1.35  # factor by which the frontier's axes extend beyond the data, for labels


def _named(accelerators: pd.Series) -> tuple[list[str], list[str]]:
    """The frontier's accelerators, at most one per shape, and the accelerator name of each row."""
    common = list(accelerators.value_counts().index)
    most = len(parts.SHAPES)
    kept = common if len(common) <= most else common[: most - 1]
    rows = [a if a in kept else OTHER for a in accelerators]
    return [*kept, *([OTHER] if OTHER in rows else [])], rows


def pareto(
    points: pd.DataFrame,
    *,
    budget_usd: float | None,
    deadline_days: float | None,
    budget_text: str,
    deadline_text: str,
    theme: str,
) -> Drawn:
    """Cost against time, on logarithmic axes: grey dots are dominated by the frontier.

    The marker of the selected plan is missing: `here` adds it, so that selecting another plan
    does not rebuild the chart.
    """
    ink = INK[theme]
    unit = unit_of(points["days"])
    points = points.assign(days=points["days"] * unit.per_day)
    deadline = deadline_days and deadline_days * unit.per_day
    xs = [*points["days"], *([deadline] if deadline else [])]
    ys = [*points["usd"], *([budget_usd] if budget_usd else [])]
    x = alt.X(
        "days:Q",
        scale=parts.log_scale(xs, gap=GAP),
        axis=parts.axis(f"Wall clock ({unit.name})", theme, format=",~g"),
    )
    y = alt.Y("usd:Q", scale=parts.log_scale(ys, gap=GAP), axis=parts.usd_axis(theme))
    tips = [
        alt.Tooltip("machine:N", title="Plan"),
        alt.Tooltip("usd:Q", title="Cost (USD)", format="$,.3~r"),
        alt.Tooltip("days:Q", title=f"Wall clock ({unit.name})", format=",.3~r"),
    ]
    best, quoted = points["frontier"].astype(bool), points["is_quote"].astype(bool)
    drawn = _rounded(points)
    frontier = drawn[best].sort_values("days")
    domain, names = _named(frontier["accelerator"])
    frontier = frontier[["days", "usd", "machine", "id"]].assign(gpu=names)

    grey = (
        alt.Chart(drawn.loc[~best & ~quoted & ~drawn["price_in_doubt"], ["days", "usd", "machine"]])
        .mark_circle(size=22, color=FAINT[theme], opacity=0.4)
        .encode(x=x, y=y, tooltip=tips)
    )
    line = (
        alt.Chart(frontier)
        .mark_line(interpolate="step-after", color=ink, strokeWidth=1.5)
        .encode(x=x, y=y)
    )
    pick = alt.selection_point(name=PICK, fields=["id"], on="click", empty=False)
    named = parts.legend(
        theme, title="Cheapest for its time", orient="top", columns=2, symbolStrokeWidth=1,
    )  # fmt: skip
    marks = (
        alt.Chart(frontier)
        .mark_point(size=110, filled=True, opacity=1, stroke=ink, strokeWidth=1)
        .encode(
            x=x,
            y=y,
            tooltip=tips,
            color=alt.Color("gpu:N", scale=parts.colours(domain), legend=named),
            shape=alt.Shape("gpu:N", scale=parts.shapes(domain), legend=named),
        )
        .add_params(pick)
    )  # fmt: skip
    doubted = _doubted(drawn[~best & ~quoted], x, y, tips, theme)
    layers: list[Any] = [grey, *doubted, line, marks]
    if quoted.any():
        layers.append(
            _quotes(drawn.loc[quoted, ["days", "usd", "machine", "id"]], x, y, tips, theme)
        )
    middle = math.sqrt(min(xs) * max(xs))
    layers += _limits(budget_usd, deadline, (budget_text, deadline_text), theme, x, y, middle)
    layers += _marker(x, y, theme, middle)
    apart = alt.Resolve(scale={"shape": "independent", "color": "independent"})
    return alt.layer(
        *layers,
        height=PARETO_PX + len(doubted) * DOUBTED_PX + LEGEND_ROW_PX * min(-(-len(domain) // 2), 2),
        resolve=apart if quoted.any() else alt.Undefined,
    )


def _doubted(
    others: pd.DataFrame, x: alt.X, y: alt.Y, tips: list[alt.Tooltip], theme: str
) -> list[alt.Chart]:
    """Hollow grey diamonds for plans on prices that count for no recommendation."""
    rows = others.loc[others["price_in_doubt"], ["days", "usd", "machine"]]
    if rows.empty:
        return []
    named = parts.legend(
        theme, orient="bottom", symbolType="diamond", symbolFillColor="transparent",
        symbolStrokeWidth=1.5, labelLimit=320,
    )  # fmt: skip
    scale = alt.Scale(domain=[IN_DOUBT], range=[FAINT[theme]])
    hollow = alt.Chart(rows.assign(price=IN_DOUBT)).mark_point(
        shape="diamond", size=34, filled=False, strokeWidth=1.2, opacity=0.8
    )
    return [
        hollow.encode(
            x=x, y=y, tooltip=tips, stroke=alt.Stroke("price:N", scale=scale, legend=named)
        )
    ]


def places(points: pd.DataFrame) -> dict[str, Place]:
    """The position of each plan in the chart of `pareto`, by the plan's id."""
    in_unit = points.assign(days=points["days"] * unit_of(points["days"]).per_day)
    rows = _rounded(in_unit)[["days", "usd"]].to_dict("records")
    return dict(zip(points["id"], rows, strict=True))


def here(spec: dict[str, Any], place: Place | None) -> dict[str, Any]:
    """The chart of `pareto` as a dict, with a ring and a label at the selected plan."""
    return {**spec, "datasets": {**spec.get("datasets", {}), HERE: [place] if place else []}}


def _rounded(points: pd.DataFrame) -> pd.DataFrame:
    """Each plan in words, with numbers rounded to what a screen can show."""
    kind = points["purchase"].str.lower()
    own = [f", {QUOTE}" if is_quote else "" for is_quote in points["is_quote"]]
    machine = [
        f"{n:,} x {gpu}, {cloud}, {how}{mark}"
        for n, gpu, cloud, how, mark in zip(
            points["num_gpus"], points["accelerator"], points["provider"], kind, own, strict=True
        )
    ]
    digits = {c: [float(f"{v:.4g}") for v in points[c]] for c in ("days", "usd")}
    return points.assign(machine=machine, **digits)


def _limits(
    budget_usd: float | None,
    deadline_days: float | None,
    texts: tuple[str, str],
    theme: str,
    x: alt.X,
    y: alt.Y,
    middle: float,
) -> list[alt.Chart]:
    """Dashed lines at the user's limits, each with its name."""
    colour, out = LIMIT[theme], []
    rule: dict[str, Any] = {"strokeDash": DASHED, "color": colour, "strokeWidth": 1.5}
    if budget_usd:
        base = alt.Chart(pd.DataFrame({"usd": [budget_usd], "text": [texts[0]]}))
        name = base.mark_text(color=colour, align="right", dx=-6, dy=-7, fontSize=TEXT_PX)
        out.append(base.mark_rule(**rule).encode(y=y))
        out.append(name.encode(x=parts.x_px("width"), y=y, text=alt.Text("text:N")))
    if deadline_days:
        base = alt.Chart(pd.DataFrame({"days": [deadline_days], "text": [texts[1]]}))
        left = deadline_days <= middle
        name = base.mark_text(
            color=colour, align="left" if left else "right", dx=6 if left else -6, fontSize=TEXT_PX
        )
        out.append(base.mark_rule(**rule).encode(x=x))
        out.append(name.encode(x=x, y=parts.y_px(10), text=alt.Text("text:N")))
    return out


def _quotes(
    quotes: pd.DataFrame, x: alt.X, y: alt.Y, tips: list[alt.Tooltip], theme: str
) -> alt.Chart:
    """A star on every plan at a price that the user was offered, whether it is beaten or not."""
    base = alt.Chart(quotes.assign(kind=QUOTE))
    return base.mark_point(
        size=150, filled=True, opacity=1, color=INK[theme], stroke=BACKGROUND[theme], strokeWidth=1
    ).encode(
        x=x,
        y=y,
        tooltip=tips,
        shape=alt.Shape(
            "kind:N",
            scale=alt.Scale(domain=[QUOTE], range=[STAR]),
            legend=parts.legend(theme, symbolFillColor=INK[theme], symbolSize=150),
        ),
    )


def _marker(x: alt.X, y: alt.Y, theme: str, middle: float) -> list[alt.Chart]:
    """A ring and a label on the selected plan, whose position `here` sets."""
    ink, base = INK[theme], alt.Chart(alt.NamedData(name=HERE))
    ring = base.mark_point(size=420, filled=False, stroke=ink, strokeWidth=2.5, opacity=1)
    layers = [ring.encode(x=x, y=y)]
    for side, test in ((1, "<="), (-1, ">")):
        half = base.transform_filter(f"datum.days {test} {middle!r}")
        for drawn in ({"stroke": BACKGROUND[theme], "strokeWidth": 4}, {"color": ink}):  # a halo
            text = half.mark_text(
                text="You are here", fontWeight="bold", fontSize=TEXT_PX,
                align="left" if side > 0 else "right", dx=15 * side, dy=-13, **drawn,
            )  # fmt: skip
            layers.append(text.encode(x=x, y=y))
    return layers


def memory_bar(
    sizes: pd.DataFrame, *, capacity_gib: float, capacity_text: str, theme: str
) -> Drawn:
    """One stacked bar against a line at the device's capacity."""
    ink = INK[theme]
    end = max(capacity_gib, float(sizes["gib"].sum())) * 1.04
    x = alt.X(
        "gib:Q", stack="zero", scale=alt.Scale(domain=[0, end], nice=False),
        axis=parts.axis("Memory per GPU (GiB)", theme, grid=False),
    )  # fmt: skip
    names = list(sizes["part"])
    bar = (
        alt.Chart(sizes)
        .mark_bar(height=34, stroke=ink, strokeWidth=0.6)
        .encode(
            x=x,
            y=parts.y_px(38),
            order=alt.Order("order:Q"),
            color=alt.Color(
                "part:N",
                sort=names,
                scale=parts.colours(names),
                legend=parts.legend(
                    theme, orient="bottom", columns=1, symbolStrokeWidth=0, symbolType="square"
                ),
            ),
            tooltip=[alt.Tooltip("part:N", title="Part")],
        )
    )
    base = alt.Chart(pd.DataFrame({"gib": [capacity_gib], "text": [capacity_text]}))
    at = alt.X("gib:Q", scale=alt.Scale(domain=[0, end], nice=False))
    rule = base.mark_rule(color=LIMIT[theme], strokeWidth=2.5, strokeDash=DASHED).encode(x=at)
    text = base.mark_text(color=LIMIT[theme], align="right", dx=-6, fontSize=TEXT_PX).encode(
        x=at, y=parts.y_px(8), text=alt.Text("text:N")
    )
    return alt.layer(bar, rule, text, height=MEMORY_PX + LEGEND_ROW_PX * len(names))


def step_waterfall(times: pd.DataFrame, *, theme: str) -> Drawn:
    """The time of one optimizer step, part by part, down to the whole step. Names stand above
    their bars, so that a narrow screen has room for both."""
    ink = INK[theme]
    end = float(times["end_s"].max())
    scale = alt.Scale(domain=[0, (end or 1.0) * 1.5], nice=False)
    base = alt.Chart(times).encode(y=alt.Y("part:N", sort=list(times["part"]), axis=None))
    bars = base.mark_bar(height=BAR_PX, yOffset=BAR_DOWN_PX, cornerRadius=1).encode(
        x=alt.X("start_s:Q", scale=scale, axis=parts.axis("Seconds of one step", theme)),
        x2=alt.X2("end_s:Q"),
        color=alt.ColorValue(
            parts.main_colour(theme), condition={"test": "datum.total", "value": FAINT[theme]}
        ),
        tooltip=[alt.Tooltip("part:N", title="Part"), alt.Tooltip("text:N", title="Time")],
    )
    texts = base.mark_text(align="left", dx=6, dy=BAR_DOWN_PX, color=ink, fontSize=TEXT_PX).encode(
        x=alt.X("end_s:Q", scale=scale), text=alt.Text("text:N")
    )
    names = parts.above(base, "part:N", theme, down_px=BAR_DOWN_PX)
    return alt.layer(bars, texts, names, height=STEP_PX + ROW_PX * len(times))
