"""The offers of the Prices page as a table: filtered, in one unit, with source and age."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from app.document import format as fmt
from app.document import vocabulary
from core.machine.offer import Offer
from core.money.other_costs import MONTH_H
from pricing.offers import age_days

LISTED = 60  # rows in the table; filters narrow it down, the CSV has all rows
IN_FILE = ("Age (days, at most)", "Note")  # columns that only the CSV has
AGING_DAYS, STALE_DAYS = 1, 7  # older than a day, older than a week
FRESH, AGING, STALE = "fresh", "over a day", "over a week"
Colour = Literal["green", "orange", "red"]
COLOURS: dict[str, Colour] = {FRESH: "green", AGING: "orange", STALE: "red"}
FILTERS = {  # the keys are fields of a scenario
    "gpu": "Accelerator",
    "cloud": "Cloud",
    "purchase": "Purchase",
    "region": "Region",
    "quality": "Quality",
}
_COLUMN = {"gpu": "accelerator", "cloud": "provider"}  # column of the frame where the name differs
WORDS: dict[str, Callable[[str], str]] = {
    "purchase": vocabulary.purchase,
    "region": vocabulary.region,
}
UNITS = {
    "gpu_hour": "USD per GPU-hour",
    "gpu_month": "USD per GPU-month",
    "instance_hour": "USD per instance-hour",
    "instance_month": "USD per instance-month",
}
CELLS = ("accelerator", "provider", "usd", "offers")
PLACE = {"instance": "instance_type", "region": "region", "kind": "purchase", "seen": "observed_at"}
_OFFER = ("accelerator", "provider", "instance_type", "gpu_count", "region", "purchase",
          "usd_per_hour", "observed_at", "quality", "source", "note")  # fmt: skip


def frame_of(offers: Sequence[Offer], today: dt.date) -> pd.DataFrame:
    """Priced offers as columns, the cheapest GPU-hour first."""
    priced = [o for o in offers if o.usd_per_hour is not None]
    frame = pd.DataFrame({name: [getattr(o, name) for o in priced] for name in _OFFER})
    hourly = frame["usd_per_hour"].to_numpy(dtype=float)
    frame["usd_per_gpu_hour"] = hourly / np.maximum(frame["gpu_count"].to_numpy(dtype=float), 1)
    ages = {day: age_days(day, today) for day in frame["observed_at"].unique()}
    frame["age_days"] = [ages[day] for day in frame["observed_at"]]
    frame["freshness"] = freshness(frame["age_days"].to_numpy(dtype=float))
    return frame.sort_values(
        ["usd_per_gpu_hour", "provider", "instance_type", "region"], ignore_index=True
    )


def freshness(days: np.ndarray) -> np.ndarray:
    """The badge for an age in days: fresh up to one day, stale after a week."""
    return np.select([days <= AGING_DAYS, days <= STALE_DAYS], [FRESH, AGING], STALE)


def choices(frame: pd.DataFrame) -> dict[str, list[str]]:
    """The values that each filter can be set to."""
    return {name: sorted(map(str, frame[_COLUMN.get(name, name)].unique())) for name in FILTERS}


def choice_label(name: str, value: str) -> str:
    """The label of a filter's choice, worded as in the table.

    >>> choice_label("region", "*"), choice_label("purchase", "on_demand")
    ('not stated', 'on demand')
    """
    return WORDS.get(name, str)(value)


def narrowed(frame: pd.DataFrame, wanted: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """The rows that match every filter; an empty filter matches all rows."""
    kept = np.ones(len(frame), dtype=bool)
    for name, values in wanted.items():
        if values:
            kept &= frame[_COLUMN.get(name, name)].isin(list(values)).to_numpy()
    return frame[kept]


def in_unit(frame: pd.DataFrame, unit: str) -> pd.Series:
    """The price column in one of the units."""
    column = frame["usd_per_hour" if unit.startswith("instance") else "usd_per_gpu_hour"]
    return column * (MONTH_H if unit.endswith("month") else 1.0)


def table(frame: pd.DataFrame, unit: str) -> pd.DataFrame:
    """The table as it is displayed, price first."""
    return pd.DataFrame(
        {
            "Accelerator": frame["accelerator"],
            "Cloud": frame["provider"],
            UNITS[unit]: in_unit(frame, unit).to_numpy(),
            "Purchase": frame["purchase"].map(vocabulary.purchase),
            "Region": frame["region"].map(vocabulary.region),
            "Instance": frame["instance_type"],
            "GPUs": frame["gpu_count"],
            "Freshness": frame["freshness"],
            "Age (days, at most)": frame["age_days"],
            "Seen": frame["observed_at"],
            "Quality": frame["quality"],
            "Source": frame["source"],
            "Note": frame["note"],
        }
    )


def heatmap(frame: pd.DataFrame) -> pd.DataFrame:
    """Cheapest GPU-hour by accelerator and cloud, one row for each pair; NaN if not offered."""
    if frame.empty:
        return pd.DataFrame(columns=[*CELLS, *PLACE])
    pairs = frame.groupby(["accelerator", "provider"], sort=True)
    first = frame.loc[pairs["usd_per_gpu_hour"].idxmin()].set_index(["accelerator", "provider"])
    places = {n: [choice_label(c, str(v)) for v in first[c]] for n, c in PLACE.items()}
    found = first.assign(usd=first["usd_per_gpu_hour"], offers=pairs.size(), **places)
    every = pd.MultiIndex.from_product(
        [sorted(frame["accelerator"].unique()), sorted(frame["provider"].unique())],
        names=["accelerator", "provider"],
    )
    cells = found[["usd", "offers", *PLACE]].reindex(every)
    blank = {"offers": 0, **dict.fromkeys(PLACE, "")}
    return cells.fillna(blank).astype({"offers": int}).reset_index()


def heatmap_sentence(cells: pd.DataFrame) -> str:
    """The heatmap in a sentence: how many pairs are offered, and the cheapest of them."""
    offered = cells[np.isfinite(cells["usd"].to_numpy(dtype=float))]
    if offered.empty:
        return "No offer is all of this."
    best = offered.iloc[int(np.argmin(offered["usd"]))]
    return (
        f"{fmt.count(len(offered))} of {fmt.count(len(cells))} pairs of accelerator and cloud are "
        f"offered; the cheapest GPU-hour is {best['accelerator']} at {best['provider']}, "
        f"{fmt.usd_per_hour(best['usd'])}."
    )


def wide(cells: pd.DataFrame) -> pd.DataFrame:
    """The heatmap as a table: accelerators in rows, clouds in columns, empty if not offered."""
    return cells.pivot_table(
        index="accelerator", columns="provider", values="usd", dropna=False
    ).reset_index()


def summary(frame: pd.DataFrame, snapshot_id: str) -> str:
    """A sentence on what is listed and how old the prices are."""
    if frame.empty:
        return f"Price snapshot {snapshot_id} lists no price."
    counts = frame["freshness"].value_counts()
    ages = ", ".join(f"{fmt.count(counts[f])} {f}" for f in (FRESH, AGING, STALE) if f in counts)
    clouds, kinds = frame["provider"].nunique(), frame["accelerator"].nunique()
    return (
        f"{fmt.count(len(frame))} prices of {clouds} clouds and {kinds} accelerators in price "
        f"snapshot {snapshot_id}: {ages}."
    )


def newest(frame: pd.DataFrame, today: dt.date) -> tuple[str, Colour]:
    """The age of the newest price in words, and the colour of its badge."""
    if frame.empty:
        return "no price", COLOURS[STALE]
    row = frame.iloc[int(np.argmin(frame["age_days"]))]
    return f"newest price {fmt.age(row['observed_at'], today)}", COLOURS[row["freshness"]]
