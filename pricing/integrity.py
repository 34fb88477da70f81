"""Checks of a list of offers before it becomes a snapshot. Pure: no file, no clock.

A finding `refuse` keeps a list from becoming a snapshot; `warn` is shown to whoever builds it. A
price is checked in USD per GPU-hour against pricing/price_bands.csv, wide enough for every market
seen and narrow enough for a month, a cent or a whole instance mistaken for an hour, a dollar or a
GPU.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from statistics import median
from typing import Literal

from core.errors import FactError, shown, unknown_sentence
from core.machine.offer import Offer
from hardware.facts import accelerators
from pricing.offers import PURCHASES, QUALITIES, first_day

BANDS_CSV = Path(__file__).with_name("price_bands.csv")
BAND_UNIT = "USD/GPU-hour"
KINDS = ("spot", "committed")
UNPRICED = "unpriced"  # instead of both kinds, with the reason: no price was seen to judge by
BAND_COLUMNS = ["accelerator", "kind", "low", "high", "unit", "source", "source_date"]
# Ratio to the median provider of an accelerator and purchase. List prices of large clouds are up
# to 5.9 times the median (H100 in June 2026), so a smaller limit would warn of normal prices.
OUTLIER_RATIO = 6.0
OUTLIER_PEERS = 5  # providers that a median needs

# (provider, instance_type, region) whose spot price may exceed its on-demand price.
SPOT_ABOVE_ON_DEMAND: frozenset[tuple[str, str, str]] = frozenset()

Severity = Literal["refuse", "warn"]
Bands = Mapping[tuple[str, str], tuple[float, float]]  # (accelerator, spot | committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem of one offer, as a sentence that names it."""

    severity: Severity
    rule: str
    sentence: str
    offer: Offer


@cache
def price_bands(path: Path = BANDS_CSV) -> Bands:
    """Lowest and highest believable USD per GPU-hour, by accelerator and kind of purchase.

    Every accelerator that can be estimated has both kinds, or a row that says why it has none.
    """
    bands: dict[tuple[str, str], tuple[float, float]] = {}
    unpriced: set[str] = set()
    with path.open(encoding="utf-8", newline="") as f:
        table = csv.DictReader(f)
        if table.fieldnames != BAND_COLUMNS:
            raise FactError(f"{path.name}:1: columns are not {', '.join(BAND_COLUMNS)}")
        for row in table:
            at = f"{path.name}:{table.line_num}"
            key = (row["accelerator"], row["kind"])
            if key[1] == UNPRICED and key[0] not in unpriced and row["source"]:
                unpriced.add(key[0])
                continue
            if key[1] not in KINDS or key in bands:
                raise FactError(f"{at}: {shown(' '.join(key))} is unknown or there twice")
            if row["unit"] != BAND_UNIT or not row["source"] or not row["source_date"]:
                raise FactError(f"{at}: unit is not {BAND_UNIT}, or no source or date")
            try:
                low, high = float(row["low"]), float(row["high"])
            except ValueError:
                raise FactError(f"{at}: low or high is not a number") from None
            if not 0 < low < high < math.inf:
                raise FactError(f"{at}: not 0 < low < high")
            bands[key] = (low, high)
    _check_complete(path, bands, unpriced)
    return bands


def _check_complete(path: Path, bands: Bands, unpriced: Collection[str]) -> None:
    """Without a band every price that a feed prints of an accelerator would be left out."""
    priced = {accelerator for accelerator, _ in bands}
    for name in sorted({*accelerators(), *priced}):
        missing = [kind for kind in KINDS if (name, kind) not in bands]
        if missing and (name in priced or name not in unpriced):
            raise FactError(
                f"{path.name}: {name} has no band of {' and '.join(missing)} prices, so that every "
                "such price of a feed would be left out: add a row of spot and one of committed "
                f"prices, or one of the kind {UNPRICED} that says why there is none"
            )


def check(offers: Sequence[Offer], *, bands: Bands, today: date) -> list[Finding]:
    """Every finding on these offers, refusals first."""
    found = [f for o in offers for f in _alone(o, bands, today)]
    # Prices that are not numbers were refused above and would break every comparison.
    priced = [o for o in offers if _is_price(o.usd_per_hour) and o.gpu_count >= 1]
    found += _duplicates(offers)
    found += _spot_against_on_demand(priced)
    found += _outliers(priced)
    return sorted(found, key=lambda f: f.severity != "refuse")


def named(o: Offer) -> str:
    """An offer as text, with enough to find its row in the table."""
    price = "no price" if o.usd_per_hour is None else f"{o.usd_per_hour:g} USD/h"
    return (
        f"{o.provider} {o.instance_type} ({o.gpu_count}x {o.accelerator}) in {o.region}, "
        f"{o.purchase}, {price}, {o.observed_at}"
    )


def _finding(severity: Severity, rule: str, o: Offer, sentence: str) -> Finding:
    return Finding(severity=severity, rule=rule, sentence=f"{named(o)}: {sentence}.", offer=o)


def _is_price(usd_per_hour: float | None) -> bool:
    return usd_per_hour is not None and math.isfinite(usd_per_hour) and usd_per_hour > 0


def _alone(o: Offer, bands: Bands, today: date) -> Iterator[Finding]:
    """Rules that need no other offer."""
    for name in ("provider", "instance_type", "region", "source"):
        if not getattr(o, name).strip():
            yield _finding("refuse", "blank", o, f"{name} is blank")
    if o.purchase not in PURCHASES:
        yield _finding("refuse", "purchase", o, f"purchase is not one of {', '.join(PURCHASES)}")
    if o.quality not in QUALITIES:
        yield _finding("refuse", "quality", o, f"quality is not one of {', '.join(QUALITIES)}")
    network = o.scale_out_gbit_per_s
    if network is not None and not 0 < network < math.inf:
        yield _finding("refuse", "network", o, f"{network} Gbit/s is not a positive number")
    try:
        if first_day(o.observed_at) > today:
            yield _finding("refuse", "date", o, f"the date lies after {today.isoformat()}")
    except FactError as e:
        yield _finding("refuse", "date", o, str(e))
    if o.gpu_count < 1:
        yield _finding("refuse", "gpu_count", o, "it has no GPU")
    elif o.usd_per_hour is None or not _is_price(o.usd_per_hour):
        yield _finding("refuse", "price", o, "the price is not a positive number")
    else:
        yield from _band(o, o.usd_per_hour / o.gpu_count, bands)


def _band(o: Offer, usd_per_gpu_hour: float, bands: Bands) -> Iterator[Finding]:
    band = bands.get((o.accelerator, "spot" if o.purchase == "spot" else "committed"))
    if band is None:
        known = sorted({accelerator for accelerator, _ in bands})
        sentence = unknown_sentence("accelerator of price_bands.csv", o.accelerator, known)
        yield _finding("refuse", "accelerator", o, sentence.removesuffix("."))
    elif not band[0] <= usd_per_gpu_hour <= band[1]:
        yield _finding(
            "refuse", "band", o,
            f"{usd_per_gpu_hour:.3g} USD per GPU-hour is outside {band[0]:g} to {band[1]:g}",
        )  # fmt: skip


def _place(o: Offer) -> tuple[str, str, str, int, str]:
    return (o.provider, o.instance_type, o.accelerator, o.gpu_count, o.region)


def _duplicates(offers: Sequence[Offer]) -> Iterator[Finding]:
    """Two prices for one place, purchase and date: harmless from two sources, a mistake from
    one."""
    seen: dict[tuple[object, ...], Offer] = {}
    for o in offers:
        key = (*_place(o), o.purchase, o.observed_at)
        if key not in seen:
            seen[key] = o
        else:
            first = seen[key]
            one_source = first.source == o.source
            yield _finding(
                "refuse" if one_source else "warn", "duplicate", o,
                f"seen on the same date at {first.usd_per_hour} USD/h by "
                + ("the same source" if one_source else shown(first.source)),
            )  # fmt: skip


def _spot_against_on_demand(offers: Sequence[Offer]) -> Iterator[Finding]:
    """Spot above on-demand at one place: a mistake on one date, a warning between two dates.

    At AWS a spot price equal to on-demand, or to a tenth of it, means that there is no market.
    """
    on_demand: dict[tuple[object, ...], list[Offer]] = defaultdict(list)
    for o in offers:
        if o.purchase == "on_demand":
            on_demand[_place(o)].append(o)
    for o in (o for o in offers if o.purchase == "spot"):
        excepted = (o.provider, o.instance_type, o.region) in SPOT_ABOVE_ON_DEMAND
        for other in on_demand[_place(o)]:
            ratio = (o.usd_per_hour or 0.0) / (other.usd_per_hour or math.inf)
            same_date = o.observed_at == other.observed_at
            where = f"the on-demand price {other.usd_per_hour:g} of {other.observed_at}"
            if ratio > 1 and not excepted:
                severity: Severity = "refuse" if same_date else "warn"
                yield _finding(severity, "spot", o, f"spot is above {where}")
            elif o.provider == "aws" and same_date and _is_no_market(ratio):
                sentence = (
                    f"spot is {ratio:.0%} of {where}, which AWS prints where there is no market"
                )
                yield _finding("refuse", "spot", o, sentence)


def _is_no_market(ratio: float) -> bool:
    return any(math.isclose(ratio, r, rel_tol=1e-4) for r in (1.0, 0.1))


def _outliers(offers: Sequence[Offer]) -> Iterator[Finding]:
    """Prices far from those of other providers; each provider counts once, however many regions it
    lists."""
    groups: dict[tuple[str, str], list[tuple[float, Offer]]] = defaultdict(list)
    for o in offers:
        if o.usd_per_hour is not None:
            groups[o.accelerator, o.purchase].append((o.usd_per_hour / o.gpu_count, o))
    for group in groups.values():
        by_provider: dict[str, list[float]] = defaultdict(list)
        for price, o in group:
            by_provider[o.provider].append(price)
        if len(by_provider) < OUTLIER_PEERS:
            continue
        middle = median(median(prices) for prices in by_provider.values())
        for price, o in group:
            if not 1 / OUTLIER_RATIO <= price / middle <= OUTLIER_RATIO:
                sentence = f"{price:.3g} USD per GPU-hour, and providers ask {middle:.3g} (median)"
                yield _finding("warn", "outlier", o, sentence)
