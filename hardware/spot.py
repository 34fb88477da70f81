"""Preemption rates and outages of spot machines: hardware/spot.csv.

There are two kinds of figures, which measure different things. A band of the AWS Spot Advisor is
the share of spot capacity that was reclaimed in the trailing month: it is not an hourly hazard, and
does not tell how often a job in that capacity was hit. A trace is the record of public probes of
one zone, with older GPUs (V100, K80, T4, A100 of 2021): up to a thousand times as many preemptions.
So `used` gives a range with its figure, and a forecast shows both ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from core.errors import FactError, shown
from hardware.tables import check_source, rows

SPOT_CSV = Path(__file__).with_name("spot.csv")
COLUMNS = (
    "quantity", "role", "provider", "instance_type", "accelerator", "region", "period", "low",
    "value", "high", "unit", "savings", "available_fraction", "outage_hours", "source",
    "source_date", "note",
)  # fmt: skip
Role = Literal["default", "assumed", "published"]
# Quantity -> its printed units, as factors to the unit that its name ends with. Days stay days.
QUANTITIES = {
    "interrupted_fraction": {"fraction": 1.0},
    "preemptions_per_day": {"per instance-day": 1.0},  # of an instance, while it is up
    "outage_hours": {"h": 1.0},
    "up_cv": {"ratio": 1.0},
    "common_fraction": {"fraction": 1.0},
    "notice_s": {"s": 1.0, "min": 60.0},
}
ADVISOR_PERIOD_S = 30 * 86400.0  # "the trailing month"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotFact:
    """One figure, or the band that it is in, in the unit with which its quantity ends."""

    quantity: str
    role: Role
    value: float | None  # None: a band has none
    low: float | None
    high: float | None
    printed: str  # the figures and unit of the source
    provider: str
    instance_type: str
    accelerator: str
    region: str
    period: str
    savings: float | None  # savings under on-demand, as a fraction
    available_fraction: float | None  # of a trace: share of the time that capacity was up
    outage_hours: float | None  # of a trace: mean
    source: str
    source_date: str
    note: str


def load_spot(path: Path = SPOT_CSV) -> tuple[SpotFact, ...]:
    """Read the table; an error names file and line: a row without unit, role or source, a figure
    outside its bounds, a second row of a quantity that forecasts would use."""
    found: list[SpotFact] = []
    for where, row in rows(path, COLUMNS):
        name = row["quantity"]
        check_source(where, name, row)
        if name not in QUANTITIES:
            raise FactError(f"{where}: {shown(name)} is not one of {', '.join(QUANTITIES)}")
        if row["unit"] not in QUANTITIES[name]:
            raise FactError(f"{where}: {name} has the unknown unit {shown(row['unit'])}")
        role = next((r for r in get_args(Role) if r == row["role"]), None)
        if role is None:
            raise FactError(f"{where}: {name} needs one of {', '.join(get_args(Role))} as role")
        if role == "assumed" and not row["note"].startswith("assumed"):
            raise FactError(f"{where}: {name} is assumed and its note does not say what")
        if role != "published" and any(f.quantity == name and f.role != "published" for f in found):
            raise FactError(f"{where}: {name} already has a value that forecasts use")
        fact = _fact(where, row, role, QUANTITIES[name][row["unit"]])
        _check(where, fact)
        found.append(fact)
    return tuple(found)


def _fact(where: str, row: dict[str, str], role: Role, factor: float) -> SpotFact:
    low, value, high = (_number(where, row[c], factor) for c in ("low", "value", "high"))
    printed = row["value"] or f"{row['low']} to {row['high']}"
    return SpotFact(
        quantity=row["quantity"],
        role=role,
        value=value,
        low=low,
        high=high,
        printed=f"{printed} {row['unit']}",
        provider=row["provider"],
        instance_type=row["instance_type"],
        accelerator=row["accelerator"],
        region=row["region"],
        period=row["period"],
        savings=_number(where, row["savings"]),
        available_fraction=_number(where, row["available_fraction"]),
        outage_hours=_number(where, row["outage_hours"]),
        source=row["source"],
        source_date=row["source_date"],
        note=row["note"],
    )


def _check(where: str, fact: SpotFact) -> None:
    ends = [x for x in (fact.low, fact.value, fact.high) if x is not None]
    if (fact.low is None) != (fact.high is None) or not ends:
        raise FactError(f"{where}: {fact.quantity} needs a value, or a low and a high end")
    if fact.role != "published" and (fact.value is None or fact.low is None):
        raise FactError(f"{where}: {fact.quantity} is in use and lacks a value or its range")
    if ends != sorted(ends) or min(ends) < 0:
        raise FactError(f"{where}: {fact.quantity} is not in order from a low end of at least 0")
    if fact.quantity.endswith("_fraction") and max(ends) > 1:
        raise FactError(f"{where}: {fact.quantity} is a fraction, at most 1")
    if fact.available_fraction is not None and not 0 <= fact.available_fraction <= 1:
        raise FactError(f"{where}: an available fraction is between 0 and 1")
    if fact.savings is not None and fact.savings >= 1:
        raise FactError(f"{where}: savings are a fraction below 1, not a percentage")


def _number(where: str, text: str, factor: float = 1.0) -> float | None:
    if not text:
        return None
    try:
        value = float(text)
    except ValueError as e:
        raise FactError(f"{where}: {e}") from None
    if not math.isfinite(value):
        raise FactError(f"{where}: {text} is not a finite number")
    return value * factor


@cache
def spot() -> tuple[SpotFact, ...]:
    """The shipped table, read once."""
    return load_spot()


def used(quantity: str) -> SpotFact:
    """The row of this quantity that forecasts use, with value, low and high: preemptions_per_day,
    outage_hours, up_cv, common_fraction."""
    return next(f for f in spot() if f.quantity == quantity and f.role != "published")


def advisor_bands(
    accelerator: str, provider: str | None = None, region: str | None = None
) -> tuple[SpotFact, ...]:
    """Bands of `interrupted_fraction` (low, high) of whole machines with this accelerator: one per
    region. Empty where the advisor has none; the region 'typical' is from a page that names
    none."""
    return tuple(
        f
        for f in spot()
        if f.quantity == "interrupted_fraction"
        and f.accelerator == accelerator
        and provider in (None, f.provider)
        and region in (None, f.region)
    )
