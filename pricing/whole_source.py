"""Whether what a source says as a whole is believed at once. Pure: no file, no clock.

Row by row, a feed that asks 0.4 of every price, loses most of its rows, or adds a machine cheaper
than all others, passes. So three things wait until the next refresh of the source says so too: the
whole list where its prices moved in the median (another source may confirm them, too), the whole
list where less than half of the rows are left, and a new place that would be the cheapest of its
accelerator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from core.machine.offer import Offer
from pricing.series import Sku, sku_of

MOVED = 1.35  # median of new over last price, or its inverse, beyond which a list waits
LEAST_COMPARED = 3  # prices that a median needs
SHRUNK = 0.5  # of the last rows: with fewer, a source has lost part of its list
FEW_ROWS = 4
AGREES = 1.25  # two statements agree, except for rounding and the hour of the day


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What waits for a second statement: a rule, a sentence, and its measure."""

    rule: str  # moved, shrunk, or cheapest
    sentence: str
    measure: float  # the median ratio, the number of rows, or a place's dollars per GPU-hour


def move_of(offers: Iterable[Offer], last: Iterable[Offer]) -> float | None:
    """Median of new over last price, of places in both; None if too few are."""
    before = {sku_of(o): o.usd_per_hour for o in last if o.usd_per_hour}
    ratios = [
        o.usd_per_hour / old for o in offers if o.usd_per_hour and (old := before.get(sku_of(o)))
    ]
    return median(ratios) if len(ratios) >= LEAST_COMPARED else None


def has_shrunk(fetched: int, last: int) -> bool:
    """Whether a source lists so much less than last time that it must be incomplete."""
    return fetched == 0 or (last >= FEW_ROWS and fetched < SHRUNK * last)


def shrunk(name: str, listed: Sequence[Offer], last: Sequence[Offer], change: str) -> Waits | None:
    """Why a list that lost most of its rows waits; None if it did not."""
    if not has_shrunk(len(listed), len(last)):
        return None
    sentence = (
        f"{name}: it lists {len(listed):,} where there were {len(last):,} prices; {change}. It "
        "waits for a second refresh."
    )
    return Waits(rule="shrunk", sentence=sentence, measure=float(len(listed)))


def moved(name: str, offers: Sequence[Offer], last: Sequence[Offer], change: str) -> Waits | None:
    """Why a list whose prices moved waits; None if they did not."""
    ratio = move_of(offers, last)
    if ratio is None or 1 / MOVED <= ratio <= MOVED:
        return None
    sentence = f"{name}: {change}. It waits for a second refresh or another source."
    return Waits(rule="moved", sentence=sentence, measure=ratio)


def change_of(
    offers: Sequence[Offer],
    listed: Sequence[Offer],
    last: Sequence[Offer],
    least: Mapping[tuple[str, str], float],
) -> str:
    """What a list would change: its prices in the median, the places that go, the accelerator whose
    cheapest price would fall most. `offers` are its sound rows, `listed` all of them."""
    ratio = move_of(offers, last)
    parts = (
        [] if ratio is None else [f"its prices are {ratio:.2f} times the last ones, in the median"]
    )
    here = {sku_of(o) for o in listed}
    gone = sum(sku_of(o) not in here for o in last)
    parts.append(f"{gone:,} of {len(last):,} places would go")
    falls = [
        (usd / least[key], key, usd)
        for key, usd in cheapest_known(offers).items()
        if usd < least.get(key, 0.0)
    ]
    if falls:
        _, key, usd = min(falls)
        parts.append(
            f"the cheapest {key[0]} ({key[1]}) would cost {usd:.4g} instead of {least[key]:.4g} "
            "USD per GPU-hour"
        )
    return "; ".join(parts)


def is_witnessed(offers: Sequence[Offer], elsewhere: Sequence[Offer]) -> bool:
    """Whether other sources print about these prices for the same places."""
    ratio = move_of(offers, elsewhere)
    return ratio is not None and 1 / AGREES <= ratio <= AGREES


def cheapest_known(offers: Iterable[Offer]) -> dict[tuple[str, str], float]:
    """The least dollars per GPU-hour of each accelerator and purchase kind, of whatever age: with
    these a new price competes."""
    least: dict[tuple[str, str], float] = {}
    for o in offers:
        if o.usd_per_hour:
            key = (o.accelerator, o.purchase)
            least[key] = min(o.usd_per_hour / o.gpu_count, least.get(key, float("inf")))
    return least


def new_cheapest(
    offers: Iterable[Offer],
    known: Mapping[Sku, object],
    least: Mapping[tuple[str, str], float],
    *,
    is_first: bool,
) -> list[tuple[Offer, Waits]]:
    """New places that would be the cheapest of their accelerator. In the first answer of a source
    every place is new: there it is those that would be so by far."""
    margin = MOVED if is_first else 1.0
    found = []
    for o in offers:
        floor = least.get((o.accelerator, o.purchase))
        if floor is None or not o.usd_per_hour or sku_of(o) in known:
            continue
        usd = o.usd_per_hour / o.gpu_count
        if usd * margin < floor:
            sentence = (
                f"{o.provider} {o.instance_type} is new and, at {usd:.4g} USD per GPU-hour, would "
                f"be the cheapest {o.accelerator} ({o.purchase}); the cheapest known is "
                f"{floor:.4g}. It waits for a second refresh or another source."
            )
            found.append((o, Waits(rule="cheapest", sentence=sentence, measure=usd)))
    return found


def is_repeated(measure: float, before: float | None) -> bool:
    """Whether the last refresh of the source held back about the same."""
    return before is not None and before > 0 and 1 / AGREES <= measure / before <= AGREES
