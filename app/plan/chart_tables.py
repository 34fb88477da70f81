"""Tables of the chart of cost against time: its plans, limits and ends, and the selected plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from app.document import chart_parts as parts
from app.document.chart_files import Rows, Spec
from app.document.durations import unit_of

Place = dict[str, float]  # days and usd
OTHER = "other GPUs"
IN_DOUBT = "old or low-quality price"
QUOTE = "your quote"
# Names of the tables.
OTHERS, FRONTIER, DOUBTED, QUOTES = "others", "frontier", "doubted", "quotes"
MARKS = "marks"  # of which there is one each:
BUDGET, DEADLINE, END, HERE_LEFT, HERE_RIGHT = "budget", "deadline", "end", "left", "right"
GAP = 1.35  # factor by which the frontier's axes extend beyond the data, for labels

# Where the word beside the selected plan stands, as shares of the plot: to the side of its marker,
# and above it.
WORD_BEGINS, WORD_ENDS, WORD_RISES = 0.01, 0.15, 0.16


def named(accelerators: pd.Series) -> tuple[list[str], list[str]]:
    """The frontier's accelerators, at most one per shape, and the accelerator name of each row."""
    common = list(accelerators.value_counts().index)
    most = len(parts.SHAPES)
    kept = sorted(common if len(common) <= most else common[: most - 1])  # steady between edits
    rows = [a if a in kept else OTHER for a in accelerators]
    return [*kept, *([OTHER] if OTHER in rows else [])], rows


def here(spec: Spec, place: Place | None) -> Spec:
    """The chart of `pareto` with a ring and a label at the selected plan."""
    if place is None:
        return spec
    tables = spec["datasets"]
    what = _side(tables, place)
    return {
        **spec,
        "datasets": {**tables, MARKS: [*tables[MARKS], mark(what, place["days"], place["usd"])]},
    }


def _side(tables: dict[str, Rows], place: Place) -> str:
    """The side of the plot that the selected plan is on, so that its word stands towards the
    middle; the other one where the word hides fewer plans of the frontier there."""
    low, high = (row for row in tables[MARKS] if row["what"] == END)

    def share(row: Mapping[str, Any], of: str, begin: Mapping[str, Any]) -> float:
        return math.log(row[of] / begin[of]) / math.log(high[of] / low[of])

    at = share(place, "days", low)
    plans = [*tables[FRONTIER], *tables.get(QUOTES, [])]
    others = [(share(row, "days", place), share(row, "usd", place)) for row in plans]
    hidden = {
        side: sum(WORD_BEGINS < towards * x < WORD_ENDS and 0 <= y < WORD_RISES for x, y in others)
        for side, towards in ((HERE_LEFT, 1), (HERE_RIGHT, -1))
    }
    usual, other = (HERE_LEFT, HERE_RIGHT) if at <= 0.5 else (HERE_RIGHT, HERE_LEFT)
    has_room = min(at, 1 - at) >= WORD_ENDS
    return other if has_room and hidden[other] < hidden[usual] else usual


def places(points: pd.DataFrame) -> dict[str, Place]:
    """The position of each plan in the chart of `pareto`, by the plan's id."""
    days = shown(points["days"] * unit_of(points["days"]).per_day)
    at = ({"days": d, "usd": u} for d, u in zip(days, shown(points["usd"]), strict=True))
    return dict(zip(points["id"], at, strict=True))


def mark(what: str, days: float, usd: float, text: str = "") -> dict[str, Any]:
    """A row of the table of single marks."""
    return {"what": what, "days": float(days), "usd": float(usd), "text": text}


def rows_of(points: pd.DataFrame, *also: str) -> Rows:
    """Plans as rows of a table of the chart."""
    columns = ["days", "usd", "machine", *also]
    values = points[columns].to_numpy(dtype=object).tolist()
    return [dict(zip(columns, row, strict=True)) for row in values]


def rounded(points: pd.DataFrame) -> pd.DataFrame:
    """Each plan in words, with numbers rounded to what a screen can show."""
    kind = points["purchase"].str.lower()
    own = [f", {QUOTE}" if is_quote else "" for is_quote in points["is_quote"]]
    machine = [
        f"{n:,} x {gpu}, {cloud}, {how}{whose}"
        for n, gpu, cloud, how, whose in zip(
            points["num_gpus"], points["accelerator"], points["provider"], kind, own, strict=True
        )
    ]
    return points.assign(machine=machine, days=shown(points["days"]), usd=shown(points["usd"]))


def shown(numbers: pd.Series) -> list[float]:
    """Numbers rounded to what a screen can show."""
    return [float(f"{v:.4g}") for v in numbers.tolist()]
