"""The cells of the heatmap: the best plan of every accelerator at every cloud.

A cell without a number gives the reason: not offered, no plan, or hidden by a filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from app.document import format as fmt
from app.document import vocabulary
from app.options.document import CLOUD, GPU, GPUS, ID, MTOKEN, PURCHASE
from app.plan import document as plan_document
from app.plan.document import AGAINST, EXPECTED_COST, EXPECTED_TIME, PRICE
from core.search.plan import Answer
from pricing.book.quotes import INSTANCE

MOST_GPUS, MOST_CLOUDS = 14, 14  # at most, the best ones; the file has every one
LEVELS = 7  # of colour, evenly spaced on a logarithmic scale
MEASURES = {
    "usd": ("Expected cost", EXPECTED_COST, "USD to pay for the run"),
    "mtoken": ("Per million tokens", MTOKEN, "USD per million tokens"),
    "price": ("GPU-hour", PRICE, "USD per GPU-hour"),
    "days": ("Expected time", EXPECTED_TIME, "days, failures included"),
}
NOT_OFFERED, NO_PLAN, HIDDEN, NO_PRICE = fmt.MISSING, "\N{MULTIPLICATION SIGN}", "o", "?"
QUOTE = "\N{BLACK STAR}"  # behind a number
MARKS = {
    NOT_OFFERED: "not offered",
    NO_PLAN: "offered, but left out",
    HIDDEN: "hidden by the filters",
    NO_PRICE: "without a price",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The cells to draw, in the order of the axes, and the words that go with them."""

    cells: pd.DataFrame  # gpu, cloud, text, level (NaN for a mark), where
    sentence: str


def _counted(counts: Counter[str]) -> str:
    """Reasons with their counts, the most frequent first."""
    names = vocabulary.NO_PLAN | vocabulary.NO_OFFER
    return ", ".join(f"{names.get(r, r)} {fmt.count(n)}" for r, n in counts.most_common())


def _pairs(frame: pd.DataFrame) -> set[tuple[str, str]]:
    """Every pair of accelerator and cloud in the table."""
    each = frame[[GPU, CLOUD]].drop_duplicates()
    return set(zip(each[GPU], each[CLOUD], strict=True))


def _cells(answer: Answer, every: pd.DataFrame, kept: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A row per pair of GPU and cloud, the best of both first: its best plan of those that nothing
    speaks against, else of all, or why none."""
    column = MEASURES[measure][1]
    priced = kept[np.isfinite(kept[column].to_numpy(dtype=float))]
    doubted = priced.assign(doubted=priced[AGAINST] != "").sort_values(
        ["doubted", column], kind="stable"
    )
    first = doubted.drop_duplicates([GPU, CLOUD])
    best = {(p[GPU], p[CLOUD]): p for p in first.to_dict("records")}
    figures = sorted(float(v) for v in first[column])
    ranked, let_through = _pairs(every), _pairs(kept)
    others = sorted({*answer.left_out_at, *ranked})
    gpus = dict.fromkeys(gpu for gpu, _ in (*best, *others))
    clouds = dict.fromkeys([*(cloud for _, cloud in best), *sorted({c for _, c in others})])
    rows: list[tuple[str, str, str, float, float, str, str]] = []
    for pair in product(gpus, clouds):
        if (plan := best.get(pair)) is not None:
            value = float(plan[column])
            shade = level(value, figures[0], figures[-1])
            own = str(plan["Instance"]).startswith(INSTANCE)
            text = _short(value, measure) + (f" {QUOTE}" if own else "")
            rows.append((*pair, text, value, shade, _where(plan), str(plan[ID])))
            continue
        if pair in let_through:
            mark, why = NO_PRICE, MARKS[NO_PRICE]
        elif pair in ranked:
            mark, why = HIDDEN, MARKS[HIDDEN]
        elif counts := answer.left_out_at.get(pair):
            mark, why = NO_PLAN, f"left out: {_counted(Counter(dict(counts)))}"
        else:
            mark, why = NOT_OFFERED, MARKS[NOT_OFFERED]
        rows.append((*pair, mark, np.nan, np.nan, why, ""))
    return pd.DataFrame(rows, columns=["gpu", "cloud", "text", "value", "level", "where", "plan"])


def drawn_of(answer: Answer, every: pd.DataFrame, kept: pd.DataFrame, measure: str) -> Drawn | None:
    """The best figure of each pair among the kept plans; None where no plan has one. `every` is
    the unfiltered list: it shows which plans only the filters hide."""
    cells = _cells(answer, every, kept, measure)
    num_found = int(cells["value"].notna().sum())
    if not num_found:
        return None
    gpus, clouds = cells["gpu"].unique(), cells["cloud"].unique()
    top, (title, _, unit) = cells.iloc[0], MEASURES[measure]
    p = answer.points
    is_outside = ~(p["meets_deadline"] & p["meets_budget"])[p["id"] == top["plan"]].all()
    outside = ", outside the deadline or the budget" if is_outside else ""
    sentence = (
        f"{title}, best plan of each pair, in {unit}: the best is {top['gpu']} at {top['cloud']}, "
        f"{top['text']}{outside}. {fmt.count(num_found)} of {fmt.count(len(cells))} pairs have a "
        "figure."
    )
    drawn_gpus, drawn_clouds = gpus[:MOST_GPUS], clouds[:MOST_CLOUDS]
    if len(gpus) > MOST_GPUS or len(clouds) > MOST_CLOUDS:
        sentence += (
            f" Drawn are the best {len(drawn_gpus)} GPUs and {len(drawn_clouds)} clouds; the file "
            f"has all {len(gpus)} and {len(clouds)}."
        )
    drawn = cells[cells["gpu"].isin(drawn_gpus) & cells["cloud"].isin(drawn_clouds)]
    shown = drawn[["gpu", "cloud", "text", "level", "where"]].reset_index(drop=True)
    return Drawn(cells=shown, sentence=sentence)


def table(answer: Answer, every: pd.DataFrame, kept: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Every pair, for a file: its figure and plan, or why there is none."""
    cells = _cells(answer, every, kept, measure).drop(columns=["text", "level"])
    return cells.rename(columns={"value": MEASURES[measure][2], "where": "best plan, or reason"})


def marks_sentence(answer: Answer, cells: pd.DataFrame) -> str:
    """What the marks in place of numbers mean, and the main reason for leaving layouts out."""
    used = set(cells["text"])
    meanings = {mark: f"{mark} {text}" for mark, text in MARKS.items() if mark in used}
    if NO_PLAN in used:
        lacking = cells[cells["text"] == NO_PLAN]
        pairs = zip(lacking["gpu"], lacking["cloud"], strict=True)
        met = [answer.left_out_at[pair] for pair in pairs]
        first = Counter(max(counts, key=counts.__getitem__) for counts in met)
        meanings[NO_PLAN] += f" (most often: {_counted(first)})"
    if any(text.endswith(QUOTE) for text in used):
        meanings[QUOTE] = f"{QUOTE} your quote"
    return f"{'; '.join(meanings.values())}." if meanings else ""


def level(value: float, low: float, high: float) -> int:
    """The colour level of a figure: 0 is the lowest, evenly spaced on a logarithmic scale.

    >>> [level(v, 1.0, 100.0) for v in (1.0, 10.0, 100.0)], level(0.0, 0.0, 0.0)
    ([0, 3, 6], 0)
    """
    if low <= 0:  # free: paid by credits
        share = (value - low) / (high - low) if high > low else 0.0
    else:
        share = float(np.log(value / low) / np.log(high / low)) if high > low else 0.0
    return min(int(share * LEVELS), LEVELS - 1)


def _short(value: float, measure: str) -> str:
    if measure == "days":
        return fmt.days(value / plan_document.DAYS_PER_HOUR).replace(" days", " d")
    return fmt.usd_short(value) if measure == "usd" else fmt.usd(value, digits=3)


def _where(row: Mapping[str, Any]) -> str:
    """The plan of a cell: its machines, time and cost, and what speaks against it."""
    against = f"; not recommended: {row[AGAINST]}" if row[AGAINST] else ""
    return (
        f"{fmt.count(row[GPUS])} GPUs, {row['Instance']}, {row['Region']}, {row[PURCHASE]}: "
        f"{fmt.usd_short(row[EXPECTED_COST])} in "
        f"{fmt.days(row[EXPECTED_TIME] / plan_document.DAYS_PER_HOUR)}{against}"
    )
