"""What of a refresh may be published. Pure: no file, no clock.

A new row is kept unless a rule of pricing/integrity.py refuses it, its source prints the same place
at two prices, or it is more than three times the last price of its place, either way. A jump is
released when a second source prints it too, or when a person accepts its source.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from core.offer import Offer
from pricing.integrity import Bands, check, named
from pricing.offers import age_days

JUMP = 3.0
AGREES = 1.25  # two sources that print the same, but for rounding and the hour of the day
COMPARED_DAYS = 180  # an older price of another source says nothing about a jump
SHRUNK = 0.5  # of the last rows, below which a source has lost what it listed
FEW_ROWS = 20

Place = tuple[str, str, str, int, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A row that is held back, and why."""

    source: str
    rule: str
    sentence: str
    usd_per_hour: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The rows of one source that may be published, old ones that stay among them."""

    offers: tuple[Offer, ...]
    quarantined: tuple[Quarantined, ...]
    new: int
    changed: int
    gone: int
    kept_old: int


def place(o: Offer) -> Place:
    """What a price is the price of."""
    return (o.provider, o.instance_type, o.accelerator, o.gpu_count, o.region, o.purchase)


def has_shrunk(fetched: int, last: int) -> bool:
    """Whether a source lists so much less than last time that something must be wrong."""
    return fetched == 0 or (last >= FEW_ROWS and fetched < SHRUNK * last)


def judged(
    fresh: Mapping[str, Sequence[Offer]],
    last: Mapping[str, Sequence[Offer]],
    others: Sequence[Offer],
    *,
    bands: Bands,
    today: date,
    accepted: Collection[str] = (),
) -> dict[str, Judged]:
    """Judge the new rows of every source against its last good ones and all others."""
    held: dict[str, list[tuple[Offer, Quarantined]]] = {name: [] for name in fresh}
    good: dict[str, list[Offer]] = {}
    for name, offers in fresh.items():
        good[name] = _one_price(name, offers, held[name])
    refused = {
        (f.offer.source, place(f.offer)): (f.rule, f.sentence)
        for f in check([o for offers in good.values() for o in offers], bands=bands, today=today)
        if f.severity == "refuse"
    }
    for name, offers in good.items():
        for o in offers:
            if (o.source, place(o)) in refused:
                rule, sentence = refused[o.source, place(o)]
                held[name].append((o, _quarantined(name, rule, sentence, o)))
        good[name] = [o for o in offers if (o.source, place(o)) not in refused]
    jumps = _jumps(good, last, others, today, accepted)
    for name, o, sentence in jumps:
        held[name].append((o, _quarantined(name, "jump", sentence, o)))
    jumped = {(name, place(o)) for name, o, _ in jumps}
    return {
        name: _judged([o for o in good[name] if (name, place(o)) not in jumped], last.get(name, ()),
                      held[name])
        for name in fresh
    }  # fmt: skip


def _quarantined(source: str, rule: str, sentence: str, o: Offer) -> Quarantined:
    usd = o.usd_per_hour
    shown_usd = usd if usd is not None and math.isfinite(usd) else None
    return Quarantined(source=source, rule=rule, sentence=sentence, usd_per_hour=shown_usd)


def _one_price(
    name: str, offers: Iterable[Offer], held: list[tuple[Offer, Quarantined]]
) -> list[Offer]:
    """One row per place; a source that prints two prices for one place is believed in neither."""
    by_place: dict[Place, list[Offer]] = defaultdict(list)
    for o in offers:
        by_place[place(o)].append(o)
    good = []
    for same in by_place.values():
        prices = sorted({o.usd_per_hour for o in same if o.usd_per_hour is not None})
        if len(prices) <= 1:
            good.append(same[0])
            continue
        texts = " and ".join(f"{p:g}" for p in prices[:3])
        for o in same:
            says = f"{named(o)}: the same source prints it at {texts} USD/h."
            held.append((o, _quarantined(name, "duplicate", says, o)))
    return good


def _jumps(
    good: Mapping[str, Sequence[Offer]],
    last: Mapping[str, Sequence[Offer]],
    others: Sequence[Offer],
    today: date,
    accepted: Collection[str],
) -> list[tuple[str, Offer, str]]:
    """New prices too far from the last one of their place that nobody else prints."""
    printed: dict[Place, list[tuple[str, float]]] = defaultdict(list)
    for name, offers in good.items():
        for o in offers:
            printed[place(o)].append((name, o.usd_per_hour or 0.0))
    elsewhere = {
        place(o): o
        for o in sorted(others, key=lambda o: o.observed_at)
        if o.usd_per_hour and age_days(o.observed_at, today) <= COMPARED_DAYS
    }
    found = []
    for name, offers in good.items():
        before = {place(o): o for o in last.get(name, ()) if o.usd_per_hour}
        for o in offers if name not in accepted else ():
            old = before.get(place(o)) or elsewhere.get(place(o))
            if old is None or old.usd_per_hour is None or o.usd_per_hour is None:
                continue
            ratio = o.usd_per_hour / old.usd_per_hour
            if 1 / JUMP <= ratio <= JUMP:
                continue
            witnesses = [usd for other, usd in printed[place(o)] if other != name]
            if any(1 / AGREES <= o.usd_per_hour / usd <= AGREES for usd in witnesses):
                continue
            says = f"it was {old.usd_per_hour:g} USD/h on {old.observed_at} and no second source"
            found.append((name, o, f"{named(o)}: {says} prints the new price."))
    return found


def _judged(
    good: Sequence[Offer], last: Sequence[Offer], held: Sequence[tuple[Offer, Quarantined]]
) -> Judged:
    """The good rows, and the last good row of every place whose new one is held back."""
    before = {place(o): o for o in last}
    now = {place(o): o for o in good}
    waiting = {place(o) for o, _ in held} - set(now)
    kept_old = [before[p] for p in waiting if p in before]
    both = before.keys() & now.keys()
    return Judged(
        offers=(*good, *kept_old),
        quarantined=tuple(q for _, q in held),
        new=len(now.keys() - before.keys()),
        changed=sum(before[p].usd_per_hour != now[p].usd_per_hour for p in both),
        gone=len(before.keys() - now.keys() - waiting),
        kept_old=len(kept_old),
    )
