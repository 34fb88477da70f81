"""Where the bytes of a GPU and the seconds of a step go, as charts.

A chart is what depends on the theme and on the number of its rows; the rows are tables beside it.
A browser keeps a chart whose specification is the same and moves its marks, so positions, colours
and the ends of the axes are columns of the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import altair as alt
import pandas as pd

from app.document import chart_parts as parts
from app.document.chart_files import Rows, Spec, spec_of
from app.document.chart_parts import DASHED, FAINT, INK, LIMIT, TEXT_PX, Drawn

Tables = dict[str, Rows]

PARTS, LIMITS = "parts", "limits"  # names of the tables
BAR_DOWN_PX, MEMORY_BAR_PX = 8, 34
LIST_PX, LINE_PX, SYMBOL_PX = 72, 18, 7  # where the list below the bar begins, a line, its square
STEP_PX, ROW_PX, BAR_PX = 4, 34, 12  # a row: a name with a bar beneath it
AXIS_PX = 52  # on a page the height of a chart holds its axis, too
KEPT = 64  # kinds of charts


def memory_bar(sizes: pd.DataFrame, *, capacity_gib: float, capacity_text: str, theme: str) -> Spec:
    """One stacked bar against a line at the device's capacity, above the list of its parts.
    `sizes`: columns part and gib, in stacking order."""
    gib = sizes["gib"].to_numpy(dtype=float)
    ends = gib.cumsum()
    colours = [parts.PALETTE[i % len(parts.PALETTE)] for i in range(len(gib))]
    rows = [
        {"part": str(part), "start": float(end - size), "end": float(end), "colour": colour,
         "y": float(LIST_PX + LINE_PX * n)}
        for n, (part, size, end, colour) in enumerate(
            zip(sizes["part"], gib, ends, colours, strict=True)
        )
    ]  # fmt: skip
    end = max(capacity_gib, float(gib.sum())) * 1.04
    return _filled(
        _memory, len(rows), theme,
        {PARTS: rows,
         LIMITS: [{"gib": float(capacity_gib), "text": capacity_text, "end": end}]},
    )  # fmt: skip


def step_waterfall(times: pd.DataFrame, *, theme: str) -> Spec:
    """The time of one optimizer step, part by part, down to the whole step. `times`: columns part,
    text, start_s, end_s and total. Names stand above their bars, so that a narrow screen has room
    for both."""
    whole = float(times["end_s"].max())
    rows = [
        {"part": str(r["part"]), "text": str(r["text"]), "start": float(r["start_s"]),
         "end": float(r["end_s"]), "y": float(STEP_PX + ROW_PX * n),
         "axis_end": (whole or 1.0) * 1.5,
         "colour": FAINT[theme] if r["total"] else parts.main_colour(theme)}
        for n, r in enumerate(times.to_dict("records"))
    ]  # fmt: skip
    return _filled(_step, len(rows), theme, {PARTS: rows})


def _filled(draw: Callable[[int, str], Drawn], num_rows: int, theme: str, tables: Tables) -> Spec:
    return {**_spec(draw, num_rows, theme), "datasets": tables}


@lru_cache(maxsize=KEPT)
def _spec(draw: Callable[[int, str], Drawn], num_rows: int, theme: str) -> Spec:
    return spec_of(draw(num_rows, theme))


def _memory(num_rows: int, theme: str) -> Drawn:
    ink, scale = INK[theme], alt.Scale(nice=False, zero=True)
    axis = parts.axis("Memory per GPU (GiB)", theme, grid=False, orient="top", **parts.CLOSE)
    rows = alt.Chart(alt.NamedData(name=PARTS))
    colour = alt.Color("colour:N", scale=None, legend=None)
    tip = [alt.Tooltip("part:N", title="Part")]
    bar = rows.mark_bar(height=MEMORY_BAR_PX, stroke=ink, strokeWidth=0.6).encode(
        x=alt.X("start:Q", scale=scale, axis=axis), x2=alt.X2("end:Q"),
        y=parts.y_px(38), color=colour, tooltip=tip,
    )  # fmt: skip
    squares = rows.mark_square(size=90, opacity=1).encode(
        x=parts.x_px(SYMBOL_PX), y=_at("y"), color=colour, tooltip=tip
    )
    names = rows.mark_text(align="left", color=ink, fontSize=TEXT_PX).encode(
        x=parts.x_px(SYMBOL_PX + 12), y=_at("y"), text=alt.Text("part:N")
    )
    limit = alt.Chart(alt.NamedData(name=LIMITS))
    at = alt.X("gib:Q", scale=scale)
    rule = limit.mark_rule(color=LIMIT[theme], strokeWidth=2.5, strokeDash=DASHED).encode(
        x=at, y=parts.y_px(0), y2=parts.y2_px(38 + MEMORY_BAR_PX / 2)
    )
    text = limit.mark_text(color=LIMIT[theme], align="right", dx=-6, fontSize=TEXT_PX).encode(
        x=at, y=parts.y_px(8), text=alt.Text("text:N")
    )
    height = AXIS_PX + LIST_PX + LINE_PX * num_rows
    return alt.layer(bar, squares, names, rule, text, _end(limit, "end", scale), height=height)


def _step(num_rows: int, theme: str) -> Drawn:
    ink, scale = INK[theme], alt.Scale(nice=False, zero=True)
    axis = parts.axis("Seconds of one step", theme, **parts.CLOSE)
    rows = alt.Chart(alt.NamedData(name=PARTS))
    bars = rows.mark_bar(height=BAR_PX, yOffset=ROW_PX / 2 + BAR_DOWN_PX, cornerRadius=1).encode(
        x=alt.X("start:Q", scale=scale, axis=axis),
        x2=alt.X2("end:Q"),
        y=_at("y"),
        color=alt.Color("colour:N", scale=None, legend=None),
        tooltip=[alt.Tooltip("part:N", title="Part"), alt.Tooltip("text:N", title="Time")],
    )
    written: dict[str, Any] = {"align": "left", "color": ink, "fontSize": TEXT_PX}
    texts = rows.mark_text(dx=6, dy=ROW_PX / 2 + BAR_DOWN_PX, **written).encode(
        x=alt.X("end:Q", scale=scale), y=_at("y"), text=alt.Text("text:N")
    )
    names = rows.mark_text(dx=2, dy=ROW_PX / 2 - BAR_DOWN_PX, **written).encode(
        x=parts.x_px(0), y=_at("y"), text=alt.Text("part:N")
    )
    height = AXIS_PX + STEP_PX + ROW_PX * num_rows
    return alt.layer(bars, texts, names, _end(rows, "axis_end", scale), height=height)


def _at(field: str) -> alt.Y:
    """A vertical position in pixels that a column holds."""
    return alt.Y(f"{field}:Q", scale=None, axis=None)


def _end(table: alt.Chart, field: str, scale: alt.Scale) -> alt.Chart:
    """Marks that nobody sees, at the end of the axis."""
    at = alt.X(f"{field}:Q", scale=scale)
    return table.mark_point(opacity=0, tooltip=None).encode(x=at, y=parts.y_px(0))
