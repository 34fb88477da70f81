"""The table of every ranked plan of an answer: filtered, sorted, in one unit of money.

Values stay numbers, in the unit that the column's name gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import get_args

import numpy as np
import pandas as pd

from app.document import format as fmt
from app.document import vocabulary
from app.forecast.training import tokens_of
from app.plan import document as plan_document
from app.plan.document import (
    AGAINST,
    COST,
    EXPECTED_COST,
    EXPECTED_TIME,
    FAILING_TIME,
    GPU_HOURS,
    MEMORY,
    MFU,
    ON_TIME,
    PAID,
    PRICE,
    SPEED,
    TIME,
)
from core.machine.offer import Purchase
from core.scenario import Scenario
from core.search.plan import Answer
from core.units import GIB

LISTED = 100  # rows on the page: more make a large message and are not read
MTOKEN, GPU_HOUR = "Cost (USD per million tokens)", "Cost (USD per GPU-hour)"
OOM, LIMITS, FRONTIER = "Chance of out of memory", "Within limits", "Fastest or cheapest"
CLOUD, GPU, GPUS, PURCHASE = "Cloud", "GPU", "GPUs", "Purchase"
ID = "Plan"

UNITS = {"run": "Whole run", "mtoken": "Per million tokens", "gpu_hour": "Per GPU-hour"}
COST_IN = {"run": PAID, "mtoken": MTOKEN, "gpu_hour": GPU_HOUR}
# Sort orders: the column, and whether higher is better.
ORDERS: dict[str, tuple[str, str, bool]] = {
    "rank": ("rank", "#", False),
    "usd": ("cost, the cheapest first", PAID, False),
    "time": ("expected time, the fastest first", EXPECTED_TIME, False),
    "failing": ("time with failures, the fastest first", FAILING_TIME, False),
    "gpus": ("GPUs, the fewest first", GPUS, False),
    "price": ("price of a GPU-hour, the cheapest first", PRICE, False),
    "speed": ("tokens/s, the most first", SPEED, True),
    "mfu": ("MFU, the highest first", MFU, True),
    "memory": ("peak memory, the least first", MEMORY, False),
}
# Columns on the page besides money and limits met; the file has every column.
SHOWN = (EXPECTED_TIME, ON_TIME, GPU, GPUS, CLOUD, "Instance", "Region", PURCHASE, "Layout", MFU,
         SPEED, MEMORY, OOM, PRICE, "Price of")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters of a list of plans; an empty one lets every plan through."""

    gpu: tuple[str, ...] = ()
    cloud: tuple[str, ...] = ()
    purchase: tuple[str, ...] = ()
    min_gpus: float | None = None
    max_gpus: float | None = None
    max_usd: float | None = None  # of the whole run; a plan without a price fails it
    max_days: float | None = None
    within_limits: bool = False
    frontier: bool = False

    @property
    def num_given(self) -> int:
        """How many filters are set."""
        lists = (self.gpu, self.cloud, self.purchase, self.within_limits, self.frontier)
        numbers = (self.min_gpus, self.max_gpus, self.max_usd, self.max_days)
        return sum(map(bool, lists)) + sum(n is not None for n in numbers)


# The scenario fields that are filters, and the labels of those that filter by name.
FILTERS = tuple(f"list_{f.name}" for f in fields(Filters))
LABELS = {"list_gpu": GPU, "list_cloud": CLOUD, "list_purchase": PURCHASE}


def filters_of(scenario: Scenario, *, has_limits: bool) -> Filters:
    """The filters in a scenario; without limits, "within limits" is true of every plan."""
    asked = {f.name: getattr(scenario, f"list_{f.name}") for f in fields(Filters)}
    bought = tuple(vocabulary.purchase(kind) for kind in scenario.list_purchase)
    within = scenario.list_within_limits and has_limits
    return Filters(**{**asked, "purchase": bought, "within_limits": within})


def every(scenario: Scenario, answer: Answer) -> pd.DataFrame:
    """Every ranked plan, the best first; ID names it in a link. The dollars of a plan without a
    price are NaN."""
    p = answer.points
    if not answer.num_plans:
        return pd.DataFrame(columns=[ID, "#", *COST_IN.values(), *SHOWN, LIMITS, FRONTIER, AGAINST])
    mtokens = tokens_of(scenario) / 1e6
    has_deadline = scenario.deadline_days is not None
    limits = np.asarray(p["meets_deadline"], dtype=bool) & np.asarray(p["meets_budget"], dtype=bool)
    return pd.DataFrame(
        {
            ID: p["id"],
            "#": p["rank"],
            PAID: p["paid_usd"],
            EXPECTED_COST: p["expected_usd"],
            MTOKEN: p["paid_usd"] / mtokens,
            GPU_HOUR: p["paid_usd"] / p["gpu_hours"],
            EXPECTED_TIME: p["expected_hours"] * plan_document.DAYS_PER_HOUR,
            ON_TIME: p["chance_on_time"] if has_deadline else math.nan,
            COST: p["usd"],
            TIME: p["hours"] * plan_document.DAYS_PER_HOUR,
            FAILING_TIME: p["expected_hours"] * plan_document.DAYS_PER_HOUR,
            GPU: p["accelerator"],
            GPUS: p["num_gpus"],
            CLOUD: p["provider"],
            "Instance": p["instance_type"],
            "Region": [vocabulary.region(str(r)) for r in p["region"]],
            PURCHASE: [vocabulary.purchase(str(k)) for k in p["purchase"]],
            "Layout": p["layout"],
            plan_document.STACK: p["stack"],
            MFU: p["mfu"],
            SPEED: p["tokens_per_s"],
            MEMORY: p["peak_memory_bytes"] / GIB,
            "Usable memory (GiB)": p["memory_capacity_bytes"] / GIB,
            OOM: p["probability_oom"],
            PRICE: p["usd_per_gpu_hour"],
            GPU_HOURS: p["gpu_hours"],
            plan_document.FAILING_COST: p["expected_usd"],
            plan_document.GOODPUT: p["goodput"],
            "Price of": p["observed_at"],
            LIMITS: np.where(limits, "yes", "no"),
            FRONTIER: np.where(np.asarray(p["frontier"], dtype=bool), "yes", "no"),
            AGAINST: [vocabulary.not_recommended(str(text).split()) for text in p["against"]],
        }
    )


def choices(frame: pd.DataFrame) -> Mapping[str, Sequence[str]]:
    """The values that each field of `LABELS` can have, in alphabetical order."""
    seen = {name: set(map(str, frame[column].unique())) for name, column in LABELS.items()}
    kinds = {
        kind for kind in get_args(Purchase) if vocabulary.purchase(kind) in seen["list_purchase"]
    }
    return {name: sorted(found) for name, found in {**seen, "list_purchase": kinds}.items()}


def narrowed(frame: pd.DataFrame, filters: Filters) -> pd.DataFrame:
    """The rows that pass the filters."""
    kept = np.ones(len(frame), dtype=bool)
    for column, wanted in (
        (GPU, filters.gpu), (CLOUD, filters.cloud), (PURCHASE, filters.purchase)
    ):  # fmt: skip
        if wanted:
            kept &= frame[column].isin(wanted).to_numpy()
    for column, low, high in (
        (GPUS, filters.min_gpus, filters.max_gpus),
        (EXPECTED_COST, None, filters.max_usd),
        (EXPECTED_TIME, None, filters.max_days),
    ):
        values = frame[column].to_numpy(dtype=float)
        if low is not None:
            kept &= values >= low
        if high is not None:
            kept &= values <= high
    if filters.within_limits:
        kept &= (frame[LIMITS] == "yes").to_numpy()
    if filters.frontier:
        kept &= (frame[FRONTIER] == "yes").to_numpy()
    return frame[kept]


def in_order(frame: pd.DataFrame, order: str) -> pd.DataFrame:
    """The rows sorted by one of `ORDERS`: ties by rank, rows without a figure last."""
    _, column, more_first = ORDERS[order]
    by_rank = frame.sort_values("#", kind="stable")
    return by_rank.sort_values(column, ascending=not more_first, kind="stable", na_position="last")


def listed(frame: pd.DataFrame, unit: str, *, has_limits: bool) -> pd.DataFrame:
    """The first rows as the page shows them: money in one unit, five significant digits."""
    doubted = [AGAINST] if frame[AGAINST].any() else []
    shown_always = [c for c in SHOWN if c != ON_TIME or frame[c].notna().any()]
    limits = [LIMITS] if has_limits else []
    columns = ["#", COST_IN[unit], *shown_always, *limits, FRONTIER, *doubted]
    shown = frame.head(LISTED)[columns].copy()
    for name in shown.select_dtypes("float").columns:
        shown[name] = [float(f"{v:.5g}") if math.isfinite(v) else v for v in shown[name]]
    return shown


def labels(frame: pd.DataFrame) -> dict[str, str]:
    """A one-line label of each plan, for a select box."""
    return {
        str(row[ID]): (
            f"#{row['#']}: {_usd(row[EXPECTED_COST])}, "
            f"{fmt.days(row[EXPECTED_TIME] / plan_document.DAYS_PER_HOUR)}, "
            f"{fmt.count(row[GPUS])} x {row[GPU]}, "
            f"{row[CLOUD]} {row['Instance']}, {row['Region']}, {row[PURCHASE]}"
        )
        for row in frame.to_dict("records")
    }


def found_sentence(num_found: int, num_ranked: int, order: str, products: int = 0) -> str:
    """How many plans pass the filters, of how many products, and how many of these are listed."""
    plans = f"{fmt.count(num_found)} of {fmt.count(num_ranked)} ranked plans pass the filters"
    if num_found == num_ranked:
        plans = f"All {fmt.count(num_ranked)} ranked plans"
    by = f"by {ORDERS[order][0]}"
    if products > LISTED:
        return f"{plans}; the first {LISTED} products {by} are listed, the files have all."
    if products < num_found:
        return f"{plans}; {fmt.count(products)} products {by}, each once: the files have all."
    return f"{plans}, {by}."


def pinned_by_rows(
    pinned: Sequence[str], listed_ids: Sequence[str], chosen: Sequence[str]
) -> tuple[str, ...]:
    """The pins after rows of the list were selected. Pinned plans that are not in the list stay,
    in their order; newly selected ones are added at the end.

    >>> pinned_by_rows(("x", "a"), ("a", "b", "c"), ("b", "c"))
    ('x', 'b', 'c')
    """
    kept = [p for p in pinned if p in chosen or p not in listed_ids]
    return (*kept, *(p for p in listed_ids if p in chosen and p not in kept))


def _usd(value: float) -> str:
    return "no price" if math.isnan(value) else fmt.usd_short(value)
