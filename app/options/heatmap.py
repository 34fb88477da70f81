"""The cells of the heatmap: the best plan of every accelerator at every cloud.

A cell without a number gives the reason: not offered, no plan, or hidden by a filter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from app.document import format as fmt
from app.document import vocabulary
from app.options.document import CLOUD, GPU, GPUS, ID, MTOKEN, PURCHASE
from app.plan import document as plan_document
from app.plan.document import COST, PRICE, TIME
from core.search.plan import Answer

MOST_GPUS, MOST_CLOUDS = 14, 14  # at most, the best ones; the file has every one
LEVELS = 7  # of colour, evenly spaced on a logarithmic scale
MEASURES = {
    "usd": ("Cost of the run", COST, "USD of the whole run"),
    "mtoken": ("Per million tokens", MTOKEN, "USD per million tokens"),
    "price": ("GPU-hour", PRICE, "USD per GPU-hour"),
    "days": ("Time", TIME, "days of wall clock"),
}
NOT_OFFERED, NO_PLAN, HIDDEN, NO_PRICE = fmt.MISSING, "\N{MULTIPLICATION SIGN}", "o", "?"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Best:
    """The best plan of each pair that has one, and all names, best first."""

    column: str
    plans: dict[tuple[str, str], dict[str, Any]]
    gpus: list[str]
    clouds: list[str]


def reasons(answer: Answer) -> dict[tuple[str, str], str]:
    """Why layouts were left out, by pair of accelerator and cloud: each limit, and the number of
    GPU counts that it excluded."""
    return {
        pair: f"left out: {_counted(Counter(dict(counts)))}"
        for pair, counts in answer.left_out_at.items()
    }


def _counted(counts: Counter[str]) -> str:
    """Reasons with their counts, the most frequent first."""
    said = vocabulary.NO_PLAN | vocabulary.NO_OFFER
    return ", ".join(f"{said.get(r, r)} {fmt.count(n)}" for r, n in counts.most_common())


def _best(answer: Answer, every: pd.DataFrame, kept: pd.DataFrame, measure: str) -> _Best:
    column = MEASURES[measure][1]
    priced = kept[np.isfinite(kept[column].to_numpy(dtype=float))]
    first = priced.sort_values(column, kind="stable").drop_duplicates([GPU, CLOUD])
    pairs = {*answer.left_out_at, *_pairs(every)}
    figures = list(zip(first[GPU], first[CLOUD], strict=True))  # best first
    gpus = dict.fromkeys([g for g, _ in figures] + sorted({g for g, _ in pairs}))
    clouds = dict.fromkeys([c for _, c in figures] + sorted({c for _, c in pairs}))
    return _Best(
        column=column,
        plans=dict(zip(figures, first.to_dict("records"), strict=True)),
        gpus=list(gpus),
        clouds=list(clouds),
    )


def _pairs(frame: pd.DataFrame) -> set[tuple[str, str]]:
    """Every pair of accelerator and cloud in the table."""
    each = frame[[GPU, CLOUD]].drop_duplicates()
    return set(zip(each[GPU], each[CLOUD], strict=True))


def _cells(
    answer: Answer,
    every: pd.DataFrame,
    kept: pd.DataFrame,
    measure: str,
    best: _Best,
    names: tuple[list[str], list[str]],
) -> pd.DataFrame:
    """One row per pair of GPU and cloud."""
    left_out = reasons(answer)
    ranked, let_through = _pairs(every), _pairs(kept)
    values = [float(p[best.column]) for p in best.plans.values()]
    rows: list[tuple[str, str, str, float, float, str, str]] = []
    for gpu in names[0]:
        for cloud in names[1]:
            pair = (gpu, cloud)
            if (plan := best.plans.get(pair)) is not None:
                value = float(plan[best.column])
                rows.append(
                    (gpu, cloud, _short(value, measure), value,
                     level(value, values[0], values[-1]), _where(plan), str(plan[ID]))
                )  # fmt: skip
                continue
            mark, why = (
                (NO_PRICE, MARKS[NO_PRICE]) if pair in let_through
                else (HIDDEN, MARKS[HIDDEN]) if pair in ranked
                else (NO_PLAN, left_out[pair]) if pair in left_out
                else (NOT_OFFERED, MARKS[NOT_OFFERED])
            )  # fmt: skip
            rows.append((gpu, cloud, mark, np.nan, np.nan, why, ""))
    return pd.DataFrame(rows, columns=["gpu", "cloud", "text", "value", "level", "where", "plan"])


def drawn_of(answer: Answer, every: pd.DataFrame, kept: pd.DataFrame, measure: str) -> Drawn | None:
    """The best figure of each pair among the kept plans; None where no plan has one. `every` is
    the unfiltered list: it shows which plans only the filters hide."""
    best = _best(answer, every, kept, measure)
    if not best.plans:
        return None
    names = best.gpus[:MOST_GPUS], best.clouds[:MOST_CLOUDS]
    cells = _cells(answer, every, kept, measure, best, names)
    (gpu, cloud), top = next(iter(best.plans.items()))
    title, column, unit = MEASURES[measure]
    sentence = (
        f"{title}, best plan of each pair, in {unit}: the best is {gpu} at {cloud}, "
        f"{_short(float(top[column]), measure)}. {fmt.count(len(best.plans))} of "
        f"{fmt.count(len(best.gpus) * len(best.clouds))} pairs have a figure."
    )
    if len(best.gpus) > MOST_GPUS or len(best.clouds) > MOST_CLOUDS:
        sentence += (
            f" Drawn are the best {len(names[0])} GPUs and {len(names[1])} clouds; the file has "
            f"all {len(best.gpus)} and {len(best.clouds)}."
        )
    return Drawn(cells=cells[["gpu", "cloud", "text", "level", "where"]], sentence=sentence)


def table(answer: Answer, every: pd.DataFrame, kept: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Every pair, for a file: its figure and plan, or why there is none."""
    best = _best(answer, every, kept, measure)
    cells = _cells(answer, every, kept, measure, best, (best.gpus, best.clouds))
    named = cells.rename(columns={"value": MEASURES[measure][2], "where": "best plan, or reason"})
    return named.drop(columns=["text", "level"])


def marks_sentence(answer: Answer, cells: pd.DataFrame) -> str:
    """What the marks in place of numbers mean, and the main reason for leaving layouts out."""
    used = set(cells["text"])
    told = [f"{mark} {text}" for mark, text in MARKS.items() if mark in used]
    if NO_PLAN in used:
        lacking = cells[cells["text"] == NO_PLAN]
        pairs = zip(lacking["gpu"], lacking["cloud"], strict=True)
        met = [answer.left_out_at[pair] for pair in pairs]
        first = Counter(max(counts, key=counts.__getitem__) for counts in met)
        told[told.index(f"{NO_PLAN} {MARKS[NO_PLAN]}")] += f" (most often: {_counted(first)})"
    return f"{'; '.join(told)}." if told else ""


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
    """The plan of a cell: its machines, time and cost."""
    return (
        f"{fmt.count(row[GPUS])} GPUs, {row['Instance']}, {row['Region']}, {row[PURCHASE]}: "
        f"{fmt.usd_short(row[COST])} in {fmt.days(row[TIME] / plan_document.DAYS_PER_HOUR)}"
    )
