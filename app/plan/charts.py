"""The chart of cost against time, from a table of app/plan/document.py.

What depends on the theme and on which marks there are is a specification, kept for the next answer;
the plans are tables beside it. A browser keeps a chart whose specification is the same and moves
its marks.

Text marks do not follow Streamlit's theme, so every chart gets the page's ink colour. Colour is
never the only distinction: shape, order or text repeats it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import altair as alt
import pandas as pd
from altair.utils.schemapi import debug_mode

from app.document import chart_parts as parts
from app.document.chart_files import BACKGROUND, Spec, spec_of
from app.document.chart_parts import DASHED, FAINT, INK, LIMIT, TEXT_PX, Drawn
from app.document.durations import unit_of
from app.plan.chart_tables import (
    BUDGET,
    DEADLINE,
    DOUBTED,
    END,
    FRONTIER,
    GAP,
    HERE_LEFT,
    HERE_RIGHT,
    IN_DOUBT,
    MARKS,
    OTHERS,
    QUOTE,
    QUOTES,
    mark,
    named,
    rounded,
    rows_of,
)

checked = debug_mode  # `with checked(False)`: charts are built in half the time

# Five points, in the unit square of a Vega shape; no GPU has it.
STAR = (
    "M0,-1.3L0.31,-0.42L1.24,-0.4L0.5,0.16L0.76,1.05L0,0.52L-0.76,1.05L-0.5,0.16L-1.24,-0.4"
    "L-0.31,-0.42Z"
)
PICK = "pick"  # name of the selection made by a click on the frontier
PARETO_PX = 262  # height of the whole chart: plot, axis and legend
DOUBTED_PX = 34  # the legend below them
# Of two names: more are cut off in a narrow window. Above two rows the plot gives way, so that the
# chart ends on the first screen.
LEGEND_ROW_PX = 19
# Closer than Streamlit's theme has it: the plot gets the room.
TIGHT: Mapping[str, Any] = {"offset": 4, "padding": 2}
KEPT = 64  # kinds of charts
COST = "replace(format(datum.value, datum.value < 1 ? '$,.2~r' : '$~s'), 'G', 'B')"  # not giga


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What decides how the frontier is drawn; everything else is in its tables."""

    theme: str
    unit: str  # of time
    gpus: tuple[str, ...]  # of the frontier, in the order of the legend
    is_doubted: bool  # whether some plan has a price in doubt
    is_quoted: bool
    has_budget: bool
    has_deadline: bool
    deadline_is_left: bool


def pareto(
    points: pd.DataFrame,
    *,
    budget_usd: float | None,
    deadline_days: float | None,
    budget_text: str,
    deadline_text: str,
    theme: str,
) -> Spec:
    """Cost against time, on logarithmic axes: grey dots are dominated by the frontier.

    The marker of the selected plan is missing: `here` adds it, so that selecting another plan
    changes nothing else.
    """
    unit = unit_of(points["days"])
    deadline = deadline_days * unit.per_day if deadline_days else None
    days = points["days"] * unit.per_day
    xs = [*days, *([deadline] if deadline else [])]
    ys = [*points["usd"], *([budget_usd] if budget_usd else [])]
    drawn = rounded(points.assign(days=days))
    best, quoted = points["frontier"].astype(bool), points["is_quote"].astype(bool)
    frontier = drawn[best].sort_values("days")
    gpus, names = named(frontier["accelerator"])
    doubted = ~best & ~quoted & drawn["price_in_doubt"]
    middle = math.sqrt(min(xs) * max(xs))
    low, high = min(xs) / GAP, max(xs) * GAP
    single = [  # marks of which there is one: a table costs 800 bytes
        mark(END, low, min(ys) / GAP),
        mark(END, high, max(ys) * GAP),
        *([mark(BUDGET, low, budget_usd, budget_text)] if budget_usd else []),
        *([mark(DEADLINE, deadline, min(ys), deadline_text)] if deadline else []),
    ]
    tables = {
        OTHERS: rows_of(drawn[~best & ~quoted & ~doubted]),
        FRONTIER: rows_of(frontier.assign(gpu=names), "id", "gpu"),
        **({DOUBTED: rows_of(drawn[doubted])} if doubted.any() else {}),
        **({QUOTES: rows_of(drawn[quoted], "id")} if quoted.any() else {}),
        MARKS: single,
    }
    kind = _Kind(
        theme=theme, unit=unit.name, gpus=tuple(gpus), is_doubted=bool(doubted.any()),
        is_quoted=bool(quoted.any()), has_budget=bool(budget_usd), has_deadline=bool(deadline),
        deadline_is_left=deadline is not None and deadline <= middle,
    )  # fmt: skip
    return {**_spec(kind), "datasets": tables}


@lru_cache(maxsize=KEPT)
def _spec(kind: _Kind) -> Spec:
    return spec_of(_drawn(kind))


def _drawn(kind: _Kind) -> Drawn:
    theme, ink = kind.theme, INK[kind.theme]
    scale = alt.Scale(type="log", nice=False)
    wall_clock = parts.axis(
        f"Wall clock ({kind.unit})", theme,
        labelExpr=parts.log_labels("x", "format(datum.value, ',~g')"), **parts.CLOSE,
    )  # fmt: skip
    cost = parts.usd_axis(theme, labelExpr=parts.log_labels("y", COST))
    x = alt.X("days:Q", scale=scale, axis=wall_clock)
    y = alt.Y("usd:Q", scale=scale, axis=cost)
    tips = [
        alt.Tooltip("machine:N", title="Plan"),
        alt.Tooltip("usd:Q", title="Cost (USD)", format="$,.3~r"),
        alt.Tooltip("days:Q", title=f"Wall clock ({kind.unit})", format=",.3~r"),
    ]
    grey = (
        _of(OTHERS)
        .mark_circle(size=22, color=FAINT[theme], opacity=0.4)
        .encode(x=x, y=y, tooltip=tips)
    )
    line = (
        _of(FRONTIER)
        .mark_line(interpolate="step-after", color=ink, strokeWidth=1.5)
        .encode(x=x, y=y)
    )
    pick = alt.selection_point(name=PICK, fields=["id"], on="click", empty=False)
    named = parts.legend(
        theme, title="Cheapest for its time", orient="top", columns=2, symbolStrokeWidth=1,
        **TIGHT,
    )  # fmt: skip
    marks = (
        _of(FRONTIER)
        .mark_point(size=110, filled=True, opacity=1, stroke=ink, strokeWidth=1)
        .encode(
            x=x,
            y=y,
            tooltip=tips,
            color=alt.Color("gpu:N", scale=parts.colours(kind.gpus), legend=named),
            shape=alt.Shape("gpu:N", scale=parts.shapes(kind.gpus), legend=named),
        )
        .add_params(pick)
    )  # fmt: skip
    ends = _one(END).mark_point(opacity=0, tooltip=None).encode(x=x, y=y)  # of both axes
    layers: list[Any] = [grey, ends, *([_doubted(x, y, tips, theme)] if kind.is_doubted else [])]
    layers += [line, marks, *([_quotes(x, y, tips, theme)] if kind.is_quoted else [])]
    layers += [*_limits(kind, x, y), *_marker(x, y, theme)]
    legend_rows = min(-(-len(kind.gpus) // 2), 2)
    apart = alt.Resolve(scale={"shape": "independent", "color": "independent"})
    return alt.layer(
        *layers,
        height=PARETO_PX + kind.is_doubted * DOUBTED_PX + LEGEND_ROW_PX * legend_rows,
        resolve=apart if kind.is_quoted else alt.Undefined,
    )


def _of(table: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=table))


def _one(*what: str) -> alt.Chart:
    """Of the marks, those of some kinds."""
    return _of(MARKS).transform_filter(" || ".join(f"datum.what == '{name}'" for name in what))


def _doubted(x: alt.X, y: alt.Y, tips: list[alt.Tooltip], theme: str) -> alt.Chart:
    """Hollow grey diamonds for plans on prices that count for no recommendation."""
    named = parts.legend(
        theme, orient="bottom", symbolType="diamond", symbolFillColor="transparent",
        symbolStrokeWidth=1.5, labelLimit=320, **TIGHT,
    )  # fmt: skip
    scale = alt.Scale(domain=[IN_DOUBT], range=[FAINT[theme]])
    hollow = (
        _of(DOUBTED)
        .transform_calculate(price=f"'{IN_DOUBT}'")
        .mark_point(shape="diamond", size=34, filled=False, strokeWidth=1.2, opacity=0.8)
    )
    return hollow.encode(
        x=x, y=y, tooltip=tips, stroke=alt.Stroke("price:N", scale=scale, legend=named)
    )


def _limits(kind: _Kind, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Dashed lines at the user's limits, each with its name."""
    colour, out = LIMIT[kind.theme], []
    rule: dict[str, Any] = {"strokeDash": DASHED, "color": colour, "strokeWidth": 1.5}
    if kind.has_budget:
        name = _one(BUDGET).mark_text(color=colour, align="right", dx=-6, dy=-7, fontSize=TEXT_PX)
        out.append(_one(BUDGET).mark_rule(**rule).encode(y=y))
        out.append(name.encode(x=parts.x_px("width"), y=y, text=alt.Text("text:N")))
    if kind.has_deadline:
        side: Literal["left", "right"] = "left" if kind.deadline_is_left else "right"
        dx = 6 if kind.deadline_is_left else -6
        name = _one(DEADLINE).mark_text(color=colour, align=side, dx=dx, fontSize=TEXT_PX)
        out.append(_one(DEADLINE).mark_rule(**rule).encode(x=x))
        out.append(name.encode(x=x, y=parts.y_px(10), text=alt.Text("text:N")))
    return out


def _quotes(x: alt.X, y: alt.Y, tips: list[alt.Tooltip], theme: str) -> alt.Chart:
    """A star on every plan at a price that the user was offered, whether it is beaten or not."""
    star = (
        _of(QUOTES)
        .transform_calculate(kind=f"'{QUOTE}'")
        .mark_point(
            size=150,
            filled=True,
            opacity=1,
            color=INK[theme],
            stroke=BACKGROUND[theme],
            strokeWidth=1,
        )
    )
    return star.encode(
        x=x,
        y=y,
        tooltip=tips,
        shape=alt.Shape(
            "kind:N",
            scale=alt.Scale(domain=[QUOTE], range=[STAR]),
            legend=parts.legend(theme, symbolFillColor=INK[theme], symbolSize=150),
        ),
    )


def _marker(x: alt.X, y: alt.Y, theme: str) -> list[alt.Chart]:
    """A ring and a label on the selected plan, whose position `here` sets."""
    ink = INK[theme]
    here = _one(HERE_LEFT, HERE_RIGHT)
    ring = here.mark_point(size=420, filled=False, stroke=ink, strokeWidth=2.5, opacity=1)
    layers = [ring.encode(x=x, y=y)]
    for what, side in ((HERE_LEFT, 1), (HERE_RIGHT, -1)):
        # Not filtered: without a row Vega warns that a scale has no end.
        shown = alt.OpacityValue(0, condition={"test": f"datum.what == '{what}'", "value": 1})
        for drawn in ({"stroke": BACKGROUND[theme], "strokeWidth": 4}, {"color": ink}):  # a halo
            text = here.mark_text(
                text="Selected", fontWeight="bold", fontSize=TEXT_PX,
                align="left" if side > 0 else "right", dx=15 * side, dy=-13, **drawn,
            )  # fmt: skip
            layers.append(text.encode(x=x, y=y, opacity=shown))
    return layers
