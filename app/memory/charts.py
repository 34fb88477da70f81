"""Stacked bars of memory, with lines for the capacity and the safe limit. Text has the theme's
colour. What colour shows, order, legend and tooltip show too."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from app.document.chart_parts import FAINT, INK, LIMIT, PALETTE, Drawn, axis, legend, x_px, y_px
from app.memory.words import part
from core.memory.memory_phases import PARTS

ROW_PX, BAR_PX = 54, 14  # a row: name, note, bar
NAME_DY, NOTE_DY, BAR_DY = -17, -2, 14
TOP, FRAME_PX = -1, 84  # row of the lines' names; height of the axis with its title
LEGEND_COLUMNS, LEGEND_ROW_PX = 2, 19
MARGIN = 1.04
DASHES, WIDTHS = ([1, 0], [2, 2]), (3, 2)  # of the capacity, of the safe limit
PIECE = (0.6, 0.95)  # extent of the bar, as parts of a row's height


def stacked(parts: pd.DataFrame, heads: pd.DataFrame, lines: pd.DataFrame, *, theme: str) -> Drawn:
    """One stacked bar per row, with its name and note above it to fit a narrow screen; the capacity
    and the safe limit are lines through each bar."""
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
    """Each line as a segment through every bar, so that it crosses no text. Its name is at the top,
    on the side with room."""
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
