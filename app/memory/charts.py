"""Stacked bars of memory against the lines of what a device holds. As in app/plan/charts.py: text
is drawn in the ink of the theme, and colour is never alone: order, legend and tooltip say the
same."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.document.chart_parts import FAINT, INK, LIMIT, PALETTE, Drawn, axis, legend, x_px, y_px
from app.memory.words import part
from core.memory.memory_phases import PARTS

ROW_PX, BAR_PX = 54, 14  # a row: name, note, bar
NAME_DY, NOTE_DY, BAR_DY = -17, -2, 14
TOP, FRAME_PX = -1, 84  # the row of the lines' names; axis, its title and what is between
LEGEND_COLUMNS, LEGEND_ROW_PX = 2, 19
MARGIN = 1.04
DASHES, WIDTHS = ([1, 0], [2, 2]), (3, 2)  # of the capacity, of what is safe
PIECE = (0.6, 0.95)  # of a row's height, where the bar is


def stacked(parts: pd.DataFrame, heads: pd.DataFrame, lines: pd.DataFrame, *, theme: str) -> Drawn:
    """One stacked bar a row, its name and note above it, so that a narrow screen has room; the
    capacity and what is safe as a line through each."""
    ink = INK[theme]
    totals = parts.groupby("row")["gib"].sum()
    end = max(float(lines["gib"].max()), float(totals.max())) * MARGIN
    scale = alt.Scale(domain=[0, end], nice=False)
    across = axis("Memory per GPU (GiB)", theme, grid=False)
    y = alt.Y("row:O", scale=alt.Scale(domain=[TOP, *heads["row"]]), axis=None)
    names = [n for n in map(part, PARTS) if n in set(parts["part"])]
    colours = [PALETTE[list(map(part, PARTS)).index(n)] for n in names]
    below = legend(
        theme, orient="bottom", columns=LEGEND_COLUMNS, labelLimit=160, symbolType="square",
        symbolStrokeWidth=0,
    )  # fmt: skip
    bars = (
        alt.Chart(parts)
        .mark_bar(height=BAR_PX, yOffset=BAR_DY, stroke=ink, strokeWidth=0.6)
        .encode(
            x=alt.X("gib:Q", stack="zero", scale=scale, axis=across),
            y=y,
            order=alt.Order("order:Q"),
            color=alt.Color(
                "part:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=below
            ),
            tooltip=[
                alt.Tooltip("part:N", title="Part"),
                alt.Tooltip("gib:Q", title="GiB", format=",.3~r"),
            ],
        )
    )
    named = alt.Chart(heads).encode(x=x_px(0), y=y)
    layers: list[Any] = [
        bars,
        *_lines(lines, [TOP, *heads["row"]], end, scale, y, theme),
        named.mark_text(
            align="left", dx=2, dy=NAME_DY, color=ink, fontSize=12, fontWeight="bold"
        ).encode(text=alt.Text("name:N")),
        named.mark_text(align="left", dx=2, dy=NOTE_DY, color=ink, fontSize=12).encode(
            text=alt.Text("note:N")
        ),
    ]
    rows = -(-len(names) // LEGEND_COLUMNS)
    height = ROW_PX * (len(heads) + 1) + FRAME_PX + LEGEND_ROW_PX * rows
    return alt.layer(*layers).properties(height=height)


def _lines(
    lines: pd.DataFrame, rows: list[int], end: float, scale: alt.Scale, y: alt.Y, theme: str
) -> list[alt.Chart]:
    """Each line as a piece through every bar, so that none crosses text, and its name on top, on
    the side with room."""
    found = []
    for n, line in enumerate(lines.to_dict("records")):
        colour = LIMIT[theme] if n == 0 else FAINT[theme]
        left = line["gib"] < end / 2
        base = alt.Chart(pd.DataFrame({"row": rows, "gib": line["gib"], "text": line["text"]}))
        base = base.encode(x=alt.X("gib:Q", scale=scale))
        pieces = base.mark_rule(color=colour, strokeWidth=WIDTHS[n], strokeDash=DASHES[n]).encode(
            y=y.copy().bandPosition(PIECE[0]), y2=alt.Y2("row:O", bandPosition=PIECE[1])
        )
        name = base.transform_filter(f"datum.row == {TOP}").mark_text(
            color=colour, fontSize=12, align="left" if left else "right", dx=6 if left else -6
        )
        found += [pieces, name.encode(y=y_px(8 + 13 * n), text=alt.Text("text:N"))]
    return found
