"""The charts of the Risk & money page, from the tables of app/buy/document.py.

Text has the theme's ink colour, and colour is never the only distinction. Names stand
above their bars, so that a narrow screen has room for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle, islice
from typing import Any

import altair as alt
import pandas as pd

from app.buy import document, labels
from app.buy.purchases import Purchases
from app.document import chart_parts as parts
from app.document import format as fmt
from app.document import vocabulary
from app.document.chart_parts import FAINT, GAP, INK, LIMIT, PALETTE, Drawn, y_px
from app.document.durations import DAYS, TimeUnit, in_unit, unit_of
from core.scenario import Scenario

ROW_PX, HEAD_PX, BAR_PX, DOWN_PX = 38, 112, 11, 9
CURVE_PX, POLICY_PX, LEGEND_ROW_PX = 400, 104, 24
WIDE = 6.0  # ratio of largest to smallest value from which the axis is logarithmic
MEASURES = {"usd": ("Cost (USD)", "$,.3~r"), "days": ("Time (days)", ",.3~r")}  # title, format
# What a name is drawn as: its colour and its shape.
Looks = Mapping[str, tuple[str, str]]
FAMILIES: Looks = dict(
    zip(
        dict.fromkeys(vocabulary.PURCHASE_FAMILIES.values()),
        ((PALETTE[5], "square"), (PALETTE[0], "circle"), (PALETTE[2], "triangle-up"),
         (PALETTE[3], "diamond"), (PALETTE[1], "cross")),
        strict=True,
    )
)  # fmt: skip
MARKETS: Looks = {
    labels.MARKETS["low"]: (PALETTE[2], "triangle-left"),
    labels.MARKETS["used"]: (PALETTE[0], "circle"),
    labels.MARKETS["high"]: (PALETTE[5], "triangle-right"),
    labels.MARKETS["trace"]: (PALETTE[3], "circle"),
}
PART_COLOURS = dict(
    zip(labels.LOST.values(), (PALETTE[n] for n in (6, 4, 5, 1, 0, 7, 2, 3)), strict=True)
)


def of(scenario: Scenario, found: Purchases, *, theme: str) -> dict[str, Drawn]:
    """Every chart of the page that has something to show."""
    unit = unit_of(document.spreads(found)["days_p90"])
    ways, policies, curves = (
        in_unit(frame, unit)
        for frame in (document.spreads(found), document.played(found), document.curves(found))
    )
    lost = document.lost(found)
    deadline = scenario.deadline_days and scenario.deadline_days * unit.per_day
    charts: dict[str, Drawn] = {}
    for name, limit in (("usd", scenario.budget_usd), ("days", deadline)):
        if ways[name].notna().any():
            charts[name] = spread_bars(ways, of=name, limit=limit, theme=theme, unit=unit)
        if policies[name].notna().any():
            charts[f"policy_{name}"] = policy_marks(
                policies, of=name, reference=_on_demand(ways, name), theme=theme, unit=unit
            )
    if not curves.empty:
        charts["curve"] = miss_curves(curves, deadline=deadline, theme=theme, unit=unit)
    if not lost.empty and lost["days"].sum() > 0:
        of_lost = unit_of(lost.groupby("way")["days"].sum())
        charts["lost"] = lost_bars(in_unit(lost, of_lost), theme=theme, unit=of_lost)
    return charts


def _measure(of: str, unit: TimeUnit) -> tuple[str, str]:
    """The title and the number format of dollars or of a time in a unit."""
    title, number = MEASURES[of]
    return title.replace(DAYS.name, unit.name), number


def _on_demand(ways: pd.DataFrame, column: str) -> float | None:
    """The value of the way that others are compared with."""
    found = ways.loc[ways["way"] == "on demand", column].dropna()
    return float(found.iloc[0]) if len(found) else None


def _colour_and_shape(
    column: str, names: pd.Series, looks: Looks, theme: str
) -> tuple[alt.Color, alt.Shape]:
    """The encoding of a column of names, which are listed in the order of `looks`."""
    shown = {name: look for name, look in looks.items() if name in set(names)}
    colours, shapes = zip(*shown.values(), strict=True)
    domain, legend = list(shown), parts.legend(theme)
    return (
        alt.Color(f"{column}:N", scale=alt.Scale(domain=domain, range=colours), legend=legend),
        alt.Shape(f"{column}:N", scale=alt.Scale(domain=domain, range=shapes), legend=legend),
    )


def _rows(data: pd.DataFrame, column: str, order: list[str]) -> alt.Chart:
    """The base of a chart with one row per name, in this order."""
    return alt.Chart(data).encode(y=alt.Y(f"{column}:N", sort=order, axis=None))


def _names(column: str, order: list[str], theme: str) -> alt.Chart:
    """The name of each row, once, above its marks."""
    base = _rows(pd.DataFrame({column: order}), column, order)
    return parts.above(base, f"{column}:N", theme, down_px=DOWN_PX)


def _scale(values: pd.Series, *more: float) -> alt.Scale:
    given = [*values.dropna(), *more]
    low, high = min(given), max(given)
    if high / low > WIDE:
        return alt.Scale(type="log", domain=[low / GAP**2, high * GAP**2], nice=False)
    return alt.Scale(domain=[0, high * GAP], nice=False)


def _axis(title: str, theme: str, values: list[float], of: str) -> alt.Axis:
    """Axis of dollars or days; round ticks if the scale is logarithmic."""
    far = min(values) > 0 and max(values) / min(values) > WIDE
    more: dict[str, Any] = {"labelBound": True}  # the last one is cut off else
    if far:
        more["values"] = parts.log_ticks(values)
    if of == "usd":
        return parts.usd_axis(theme, title, **more)
    return parts.axis(title, theme, format=",.4~r", **more)


def _rule(value: float, text: str, scale: alt.Scale, colour: str, dash: list[int]) -> list[Any]:
    """A vertical line at one value, with its name above the names of rows."""
    name = alt.Chart(pd.DataFrame({"at": [value], "text": [text]})).mark_text(
        color=colour, align="left", dx=4, fontSize=11
    )
    at = alt.X("at:Q", scale=scale)
    return [
        parts.rule("x", value, scale, colour, dash),
        name.encode(x=at, y=y_px(-5), text=alt.Text("text:N")),
    ]


def spread_bars(
    rows: pd.DataFrame, *, of: str, limit: float | None, theme: str, unit: TimeUnit = DAYS
) -> Drawn:
    """P10 to P90 as a bar, P50 as a tick, the mean as a mark of its own. `of`: usd or
    days, which are in `unit`."""
    ink, (title, number) = INK[theme], _measure(of, unit)
    shown = rows.dropna(subset=[of])
    data = pd.DataFrame(
        {
            "way": shown["way"], "family": shown["family"], "machine": shown["machine"],
            "expected": shown[of], "low": shown[f"{of}_p10"], "middle": shown[f"{of}_p50"],
            "high": shown[f"{of}_p90"],
        }
    )  # fmt: skip
    order = list(data["way"])
    scale = _scale(pd.concat([data["low"], data["high"]]), *([limit] if limit else []))
    tips = [
        alt.Tooltip("way:N", title="Way to buy"),
        alt.Tooltip("machine:N", title="Machine"),
        alt.Tooltip("expected:Q", title=f"Mean {title}", format=number),
        alt.Tooltip("low:Q", title="P10", format=number),
        alt.Tooltip("middle:Q", title="P50", format=number),
        alt.Tooltip("high:Q", title="P90", format=number),
    ]
    base = _rows(data, "way", order)
    axis = _axis(title, theme, [*data["low"].dropna(), *data["high"].dropna()], of)
    colour, shape = _colour_and_shape("family", data["family"], FAMILIES, theme)
    bars = base.mark_bar(height=BAR_PX, yOffset=DOWN_PX, opacity=0.45, cornerRadius=1).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q"), color=colour, tooltip=tips
    )
    ticks = base.mark_tick(
        color=ink, thickness=2, height=BAR_PX + 4, yOffset=DOWN_PX, orient="vertical"
    ).encode(x=alt.X("middle:Q", scale=scale), tooltip=tips)
    dots = base.mark_point(
        size=70, filled=True, opacity=1, stroke=ink, strokeWidth=1, yOffset=DOWN_PX
    ).encode(x=alt.X("expected:Q", scale=scale), color=colour, shape=shape, tooltip=tips)
    layers: list[Any] = []
    if (reference := _on_demand(data, "expected")) is not None:
        layers.append(parts.rule("x", reference, scale, FAINT[theme], [2, 3]))
    if limit:
        days, usd = (
            f"deadline {fmt.days(limit / unit.per_day * 24)}",
            f"budget {fmt.usd_short(limit)}",
        )
        layers += _rule(limit, usd if of == "usd" else days, scale, LIMIT[theme], [7, 4])
    layers += [bars, ticks, dots, parts.above(base, "way:N", theme, down_px=DOWN_PX)]
    return alt.layer(*layers).properties(height=HEAD_PX + ROW_PX * len(order))


def miss_curves(
    rows: pd.DataFrame, *, deadline: float | None, theme: str, unit: TimeUnit = DAYS
) -> Drawn:
    """The chance of missing a deadline against the deadline, one line per way."""
    order = list(dict.fromkeys(rows["way"]))
    visible = [*PALETTE[:6], FAINT[theme], INK[theme]]  # yellow lines are hard to see on white
    colours = alt.Scale(domain=order, range=list(islice(cycle(visible), len(order))))
    scale = alt.Scale(
        domain=[float(rows["days"].min()), max(float(rows["days"].max()), deadline or 0.0)],
        nice=False,
    )
    title = f"Deadline ({unit.name})"
    legend = parts.legend(theme, columns=2, symbolType="stroke", symbolStrokeWidth=2)
    lines = (
        alt.Chart(rows)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "days:Q",
                scale=scale,
                axis=parts.axis(title, theme, format=",.4~r"),
            ),
            y=alt.Y(
                "late:Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=parts.axis("Chance to miss it", theme, format=".0%"),
            ),
            color=alt.Color("way:N", scale=colours, legend=legend),
            strokeDash=alt.StrokeDash("way:N", scale=parts.dashes(order), legend=legend),
            tooltip=[
                alt.Tooltip("way:N", title="Way to buy"),
                alt.Tooltip("days:Q", title=title, format=".3~r"),
                alt.Tooltip("late:Q", title="Chance to miss it", format=".0%"),
            ],
        )
    )
    layers: list[Any] = [lines]
    if deadline:
        layers += _rule(deadline, "deadline", scale, LIMIT[theme], [7, 4])
    return alt.layer(*layers).properties(height=CURVE_PX)


def lost_bars(rows: pd.DataFrame, *, theme: str, unit: TimeUnit = DAYS) -> Drawn:
    """Mean time not spent training, stacked by cause."""
    order = list(dict.fromkeys(rows["way"]))
    kept = [p for p in PART_COLOURS if rows.loc[rows["part"] == p, "days"].sum() > 0]
    shown = rows[rows["part"].isin(kept)]
    end = float(shown.groupby("way")["days"].sum().max()) if len(shown) else 1.0
    bars = (
        _rows(shown, "way", order)
        .mark_bar(height=BAR_PX, yOffset=DOWN_PX, stroke=INK[theme], strokeWidth=0.4)
        .encode(
            x=alt.X(
                "days:Q",
                stack="zero",
                scale=alt.Scale(domain=[0, (end or 1.0) * GAP], nice=False),
                axis=parts.axis(f"Mean {unit.name} that are not training", theme, format=",.4~r"),
            ),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=kept, range=[PART_COLOURS[p] for p in kept]),
                legend=parts.legend(theme, columns=2, symbolStrokeWidth=0, symbolType="square"),
            ),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("way:N", title="Way to buy"),
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("text:N", title="Mean"),
            ],
        )
    )
    height = HEAD_PX + LEGEND_ROW_PX + ROW_PX * len(order)
    return alt.layer(bars, _names("way", order, theme)).properties(height=height)


def policy_marks(
    rows: pd.DataFrame, *, of: str, reference: float | None, theme: str, unit: TimeUnit = DAYS
) -> Drawn:
    """Each policy on each market, connected by a line; on demand as a dashed line. `of`: usd or
    days, which are in `unit`."""
    ink, (measure, number) = INK[theme], _measure(of, unit)
    title = f"Mean {measure[0].lower()}{measure[1:]}"
    shown = rows.dropna(subset=[of]).assign(value=rows[of])
    order = list(dict.fromkeys(shown["policy"]))
    scale = _scale(shown["value"], *([reference] if reference else []))
    base = _rows(shown, "policy", order)
    colour, shape = _colour_and_shape("market", shown["market"], MARKETS, theme)
    lines = base.mark_line(color=FAINT[theme], strokeWidth=2, yOffset=DOWN_PX).encode(
        x=alt.X("value:Q", scale=scale, axis=_axis(title, theme, list(shown["value"]), of)),
        detail=alt.Detail("policy:N"),
    )  # fmt: skip
    dots = base.mark_point(
        size=85, filled=True, opacity=1, stroke=ink, strokeWidth=1, yOffset=DOWN_PX
    ).encode(
        x=alt.X("value:Q", scale=scale),
        color=colour,
        shape=shape,
        tooltip=[
            alt.Tooltip("policy:N", title="Policy"),
            alt.Tooltip("preemptions_per_day:Q", title="Interruptions of the run a day",
                        format=".3~r"),
            alt.Tooltip("usd:Q", title="Mean cost (USD)", format="$,.3~r"),
            alt.Tooltip("days:Q", title=f"Mean time ({unit.name})", format=",.3~r"),
            alt.Tooltip("late:Q", title="Misses the deadline", format=".0%"),
            alt.Tooltip("value:Q", title=title, format=number),
        ],
    )  # fmt: skip
    layers: list[Any] = [lines, dots, _names("policy", order, theme)]
    if reference:
        layers = [*_rule(reference, "on demand", scale, FAINT[theme], [2, 3]), *layers]
    return alt.layer(*layers).properties(height=POLICY_PX + ROW_PX * len(order))
