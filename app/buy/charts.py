"""The charts of the Prices & risk page, from the tables of app/buy/document.py.

Text has the theme's ink colour, and colour is never the only distinction. Names stand
above their bars, so that a narrow screen has room for both.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.buy import document, labels
from app.buy.purchases import Purchases
from app.document import chart_parts as parts
from app.document import format as fmt
from app.document import vocabulary
from app.document.chart_parts import DASHES, FAINT, GAP, INK, LIMIT, PALETTE, Drawn, y_px
from core.scenario import Scenario

ROW_PX, HEAD_PX, BAR_PX, DOWN_PX = 38, 112, 11, 9
CURVE_PX, POLICY_PX, LEGEND_ROW_PX = 400, 104, 24
WIDE = 6.0  # ratio of largest to smallest value from which the axis is logarithmic
FAMILIES = tuple(dict.fromkeys(vocabulary.PURCHASE_FAMILIES.values()))
FAMILY_SHAPES = ("square", "circle", "triangle-up", "diamond", "cross")
FAMILY_COLOURS = (PALETTE[5], PALETTE[0], PALETTE[2], PALETTE[3], PALETTE[1])
PARTS = tuple(vocabulary.LOST.values())
PART_COLOURS = (PALETTE[4], PALETTE[5], PALETTE[1], PALETTE[0], PALETTE[7])
MARKETS = tuple(labels.MARKETS[n] for n in ("low", "used", "high", "trace"))
MARKET_SHAPES = ("triangle-left", "circle", "triangle-right", "circle")
MARKET_COLOURS = (PALETTE[2], PALETTE[0], PALETTE[5], PALETTE[3])


def of(scenario: Scenario, found: Purchases, *, theme: str) -> dict[str, Drawn]:
    """Every chart of the page that has something to show."""
    ways, policies = document.spreads(found), document.played(found)
    charts: dict[str, Drawn] = {}
    reference = ways[ways["way"] == "on demand"]
    deadline, budget = scenario.deadline_days, scenario.budget_usd
    for name, title, number, limit, text in (
        ("usd", "Cost (USD)", "$,.3~r", budget, f"budget {fmt.usd_short(budget)}"),
        ("days", "Time (days)", ",.3~r", deadline, f"deadline {fmt.count(deadline)} days"),
    ):
        if ways[name].notna().any():
            charts[name] = spread_bars(
                ways, of=name, title=title, number=number, limit=limit, limit_text=text, theme=theme
            )
        if policies[name].notna().any():
            at = float(reference[name].iloc[0]) if len(reference) else None
            charts[f"policy_{name}"] = policy_marks(
                policies, of=name, title=f"Expected {title[0].lower()}{title[1:]}", number=number,
                reference=at if at == at else None, theme=theme,
            )  # fmt: skip
    if not (curves := document.curves(found)).empty:
        charts["curve"] = miss_curves(curves, deadline_days=deadline, theme=theme)
    if not (lost := document.lost(found)).empty and lost["days"].sum() > 0:
        charts["lost"] = lost_bars(lost, theme=theme)
    return charts


def _scale(values: pd.Series, *more: float) -> alt.Scale:
    given = [*values.dropna(), *more]
    low, high = min(given), max(given)
    if high / low > WIDE:
        return alt.Scale(type="log", domain=[low / GAP**2, high * GAP**2], nice=False)
    return alt.Scale(domain=[0, high * GAP], nice=False)


def _axis(title: str, theme: str, values: list[float], of: str) -> alt.Axis:
    """Axis of dollars or days; round ticks if the scale is logarithmic."""
    far = min(values) > 0 and max(values) / min(values) > WIDE
    more = {"values": parts.log_ticks(values)} if far else {}
    if of == "usd":
        return parts.usd_axis(theme, title, **more)
    return parts.axis(title, theme, format=",.4~r", **more)


def _rule(value: float, text: str, scale: alt.Scale, colour: str, dash: list[int]) -> list[Any]:
    """A vertical line at one value, with its name at the top."""
    name = alt.Chart(pd.DataFrame({"at": [value], "text": [text]})).mark_text(
        color=colour, align="left", dx=4, fontSize=11
    )
    at = alt.X("at:Q", scale=scale)
    return [
        parts.rule("x", value, scale, colour, dash),
        name.encode(x=at, y=y_px(6), text=alt.Text("text:N")),
    ]


def spread_bars(
    rows: pd.DataFrame,
    *,
    of: str,
    title: str,
    number: str,
    limit: float | None,
    limit_text: str,
    theme: str,
) -> Drawn:
    """P10 to P90 as a bar, P50 as a tick, the expected value as a mark of its own. `of`: usd or
    days."""
    ink = INK[theme]
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
        alt.Tooltip("expected:Q", title=f"Expected {title}", format=number),
        alt.Tooltip("low:Q", title="P10", format=number),
        alt.Tooltip("middle:Q", title="P50", format=number),
        alt.Tooltip("high:Q", title="P90", format=number),
    ]
    base = alt.Chart(data).encode(y=alt.Y("way:N", sort=order, axis=None))
    axis = _axis(title, theme, [*data["low"].dropna(), *data["high"].dropna()], of)
    families = [f for f in FAMILIES if f in set(data["family"])]
    places = [FAMILIES.index(f) for f in families]
    colour = alt.Color(
        "family:N",
        scale=alt.Scale(domain=families, range=[FAMILY_COLOURS[i] for i in places]),
        legend=parts.legend(theme),
    )
    bars = base.mark_bar(height=BAR_PX, yOffset=DOWN_PX, opacity=0.45, cornerRadius=1).encode(
        x=alt.X("low:Q", scale=scale, axis=axis), x2=alt.X2("high:Q"), color=colour, tooltip=tips
    )
    ticks = base.mark_tick(
        color=ink, thickness=2, height=BAR_PX + 4, yOffset=DOWN_PX, orient="vertical"
    ).encode(x=alt.X("middle:Q", scale=scale), tooltip=tips)
    dots = base.mark_point(
        size=70, filled=True, opacity=1, stroke=ink, strokeWidth=1, yOffset=DOWN_PX
    ).encode(
        x=alt.X("expected:Q", scale=scale),
        color=colour,
        shape=alt.Shape(
            "family:N",
            scale=alt.Scale(domain=families, range=[FAMILY_SHAPES[i] for i in places]),
            legend=parts.legend(theme),
        ),
        tooltip=tips,
    )
    layers: list[Any] = []
    reference = data.loc[data["way"] == "on demand", "expected"]
    if len(reference):
        layers.append(parts.rule("x", float(reference.iloc[0]), scale, FAINT[theme], [2, 3]))
    if limit:
        layers += _rule(limit, limit_text, scale, LIMIT[theme], [7, 4])
    layers += [bars, ticks, dots, parts.above(base, "way:N", theme, down_px=DOWN_PX)]
    return alt.layer(*layers).properties(height=HEAD_PX + ROW_PX * len(order))


def miss_curves(rows: pd.DataFrame, *, deadline_days: float | None, theme: str) -> Drawn:
    """The chance of missing a deadline against the deadline, one line per way."""
    order = list(dict.fromkeys(rows["way"]))
    colours = [*PALETTE[:6], FAINT[theme], INK[theme]]  # yellow lines are hard to see on white
    scale = alt.Scale(
        domain=[float(rows["days"].min()), max(float(rows["days"].max()), deadline_days or 0.0)],
        nice=False,
    )
    legend = parts.legend(theme, columns=2, symbolType="stroke", symbolStrokeWidth=2)
    lines = (
        alt.Chart(rows)
        .mark_line(strokeWidth=2)
        .encode(
            x=alt.X(
                "days:Q", scale=scale, axis=parts.axis("Deadline (days)", theme, format=",.4~r")
            ),
            y=alt.Y(
                "late:Q",
                scale=alt.Scale(domain=[0, 1]),
                axis=parts.axis("Chance to miss it", theme, format=".0%"),
            ),
            color=alt.Color(
                "way:N",
                scale=alt.Scale(
                    domain=order, range=[colours[i % len(colours)] for i in range(len(order))]
                ),
                legend=legend,
            ),
            strokeDash=alt.StrokeDash(
                "way:N",
                scale=alt.Scale(
                    domain=order, range=[DASHES[i % len(DASHES)] for i in range(len(order))]
                ),
                legend=legend,
            ),
            tooltip=[
                alt.Tooltip("way:N", title="Way to buy"),
                alt.Tooltip("days:Q", title="Deadline (days)", format=".3~r"),
                alt.Tooltip("late:Q", title="Chance to miss it", format=".0%"),
            ],
        )
    )
    layers: list[Any] = [lines]
    if deadline_days:
        layers += _rule(deadline_days, "deadline", scale, LIMIT[theme], [7, 4])
    return alt.layer(*layers).properties(height=CURVE_PX)


def lost_bars(rows: pd.DataFrame, *, theme: str) -> Drawn:
    """Expected days not spent training, stacked by cause."""
    order = list(dict.fromkeys(rows["way"]))
    kept = [p for p in PARTS if rows.loc[rows["part"] == p, "days"].sum() > 0]
    places = [PARTS.index(p) for p in kept]
    shown = rows[rows["part"].isin(kept)]
    end = float(shown.groupby("way")["days"].sum().max()) if len(shown) else 1.0
    base = alt.Chart(shown).encode(y=alt.Y("way:N", sort=order, axis=None))
    bars = base.mark_bar(height=BAR_PX, yOffset=DOWN_PX, stroke=INK[theme], strokeWidth=0.4).encode(
        x=alt.X(
            "days:Q",
            stack="zero",
            scale=alt.Scale(domain=[0, (end or 1.0) * GAP], nice=False),
            axis=parts.axis("Expected days that are not training", theme, format=",.4~r"),
        ),
        color=alt.Color(
            "part:N",
            scale=alt.Scale(domain=kept, range=[PART_COLOURS[i] for i in places]),
            legend=parts.legend(theme, columns=2, symbolStrokeWidth=0, symbolType="square"),
        ),
        order=alt.Order("order:Q"),
        tooltip=[
            alt.Tooltip("way:N", title="Way to buy"),
            alt.Tooltip("part:N", title="Part"),
            alt.Tooltip("text:N", title="Expected"),
        ],
    )
    rows_of = alt.Chart(pd.DataFrame({"way": order}))
    names = parts.above(
        rows_of.encode(y=alt.Y("way:N", sort=order, axis=None)), "way:N", theme, down_px=DOWN_PX
    )
    return alt.layer(bars, names).properties(height=HEAD_PX + LEGEND_ROW_PX + ROW_PX * len(order))


def policy_marks(
    rows: pd.DataFrame, *, of: str, title: str, number: str, reference: float | None, theme: str
) -> Drawn:
    """Each policy on each market, connected by a line; on demand as a dashed line."""
    ink = INK[theme]
    shown = rows.dropna(subset=[of]).assign(value=rows[of])
    order = list(dict.fromkeys(shown["policy"]))
    scale = _scale(shown["value"], *([reference] if reference else []))
    base = alt.Chart(shown).encode(y=alt.Y("policy:N", sort=order, axis=None))
    markets = [m for m in MARKETS if m in set(shown["market"])]
    places = [MARKETS.index(m) for m in markets]
    lines = base.mark_line(color=FAINT[theme], strokeWidth=2, yOffset=DOWN_PX).encode(
        x=alt.X("value:Q", scale=scale, axis=_axis(title, theme, list(shown["value"]), of)),
        detail=alt.Detail("policy:N"),
    )  # fmt: skip
    dots = base.mark_point(
        size=85, filled=True, opacity=1, stroke=ink, strokeWidth=1, yOffset=DOWN_PX
    ).encode(
        x=alt.X("value:Q", scale=scale),
        color=alt.Color(
            "market:N",
            scale=alt.Scale(domain=markets, range=[MARKET_COLOURS[i] for i in places]),
            legend=parts.legend(theme),
        ),
        shape=alt.Shape(
            "market:N",
            scale=alt.Scale(domain=markets, range=[MARKET_SHAPES[i] for i in places]),
            legend=parts.legend(theme),
        ),
        tooltip=[
            alt.Tooltip("policy:N", title="Policy"),
            alt.Tooltip("preemptions_per_day:Q", title="Preemptions of the job a day",
                        format=".3~r"),
            alt.Tooltip("usd:Q", title="Expected cost (USD)", format="$,.3~r"),
            alt.Tooltip("days:Q", title="Expected time (days)", format=",.3~r"),
            alt.Tooltip("late:Q", title="Misses the deadline", format=".0%"),
            alt.Tooltip("value:Q", title=title, format=number),
        ],
    )  # fmt: skip
    rows_of = alt.Chart(pd.DataFrame({"policy": order}))
    names = parts.above(
        rows_of.encode(y=alt.Y("policy:N", sort=order, axis=None)), "policy:N", theme,
        down_px=DOWN_PX,
    )  # fmt: skip
    layers: list[Any] = [lines, dots, names]
    if reference:
        layers = [*_rule(reference, "on demand", scale, FAINT[theme], [2, 3]), *layers]
    return alt.layer(*layers).properties(height=POLICY_PX + ROW_PX * len(order))
