"""Which rows of a refresh may be published. Pure: no file, no clock.

A new row is kept unless a rule of pricing/integrity.py refuses it, its source prints two prices for
the place, or it differs from the last price of its place by more than a factor of three. A jump is
released when a second source prints it, too, or when a person accepts its source. A list that moved
or shrank as a whole, and a new place that would be the cheapest, wait for a second statement
(pricing/whole_source.py); a person may leave such a list, and then no second refresh publishes it.
A person may also release single prices: prices close to a released one are then accepted at that
place.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from core.machine.offer import Offer
from pricing.integrity import Bands, check, named
from pricing.offers import age_days
from pricing.series import Sku, sku_of
from pricing.whole_source import (
    AGREES,
    Waits,
    change_of,
    cheapest_known,
    is_repeated,
    is_witnessed,
    moved,
    new_cheapest,
    shrunk,
)

JUMP = 3.0
COMPARED_DAYS = 180  # an older price of another source does not confirm a jump

# Rules that a person may overrule, unlike a price that is not a number.
RELEASABLE = frozenset({"jump", "band", "spot", "duplicate", "cheapest"})
WHOLE = frozenset({"moved", "shrunk"})  # rules that hold back a whole list

# (source, place) -> prices that a person has released
Released = Mapping[tuple[str, Sku], Collection[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantined:
    """A row that is held back, with the reason. A row that could not be read as an offer has no
    place."""

    source: str
    rule: str
    sentence: str
    usd_per_hour: float | None = None
    provider: str = ""
    instance_type: str = ""
    accelerator: str = ""
    gpu_count: int = 0
    region: str = ""
    purchase: str = ""
    measure: float | None = None  # what a second refresh must say again
    left_by: str = ""  # of a whole list: who leaves it, whatever a second refresh says

    @property
    def sku(self) -> Sku | None:
        """The place whose price is held back."""
        if not self.provider:
            return None
        return Sku(
            self.provider, self.instance_type, self.accelerator, self.gpu_count, self.region,
            self.purchase,
        )  # fmt: skip

    @property
    def key(self) -> str:
        """12 hex digits that identify the row in every refresh, whatever its price is then.

        Two prices of one place are two rows, and so are two rows that could not be read.
        """
        if self.sku is None:
            what: tuple[object, ...] = () if self.rule in WHOLE else (self.sentence,)
        else:
            what = (*self.sku, self.usd_per_hour if self.rule == "duplicate" else "")
        text = "\n".join(map(str, (self.source, self.rule, *what)))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def releasable(self) -> bool:
        """Whether a person may release the price."""
        return self.rule in RELEASABLE and self.usd_per_hour is not None and self.sku is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The rows of one source that may be published, including old rows that stay."""

    offers: tuple[Offer, ...]
    quarantined: tuple[Quarantined, ...]
    new: int
    changed: int
    gone: int
    kept_old: int

    @property
    def fresh(self) -> tuple[Offer, ...]:
        """The rows seen in this refresh."""
        return self.offers[: len(self.offers) - self.kept_old]


def judged(
    fresh: Mapping[str, Sequence[Offer]],
    last: Mapping[str, Sequence[Offer]],
    others: Sequence[Offer],
    *,
    bands: Bands,
    today: date,
    accepted: Collection[str] = (),
    released: Released | None = None,
    waiting: Sequence[Quarantined] = (),
    in_part: Collection[str] = (),
) -> dict[str, Judged]:
    """Check the new rows of every source against its last good rows and those of other sources.
    `waiting` is what the last refresh held back, `in_part` the sources that were not read whole."""
    released = released or {}
    held: dict[str, list[tuple[Offer, Quarantined]]] = {name: [] for name in fresh}
    good: dict[str, list[Offer]] = {}
    for name, offers in fresh.items():
        good[name] = _one_price(name, offers, held[name], released)
    findings: dict[tuple[str, Sku], list[tuple[str, str]]] = defaultdict(list)
    for f in check([o for offers in good.values() for o in offers], bands=bands, today=today):
        if f.severity == "refuse":
            findings[f.offer.source, sku_of(f.offer)].append((f.rule, f.sentence))
    for name, offers in good.items():
        kept = []
        for o in offers:
            found = findings.get((o.source, sku_of(o)), [])
            if _is_released(name, o, released):
                found = [f for f in found if f[0] not in RELEASABLE]
            if found:
                held[name].append((o, _quarantined(name, *found[-1], o)))
            else:
                kept.append(o)
        good[name] = kept
    jumps = [
        (name, o, sentence)
        for name, o, sentence in _jumps(good, last, others, today, accepted)
        if not _is_released(name, o, released)
    ]
    for name, o, sentence in jumps:
        held[name].append((o, _quarantined(name, "jump", sentence, o)))
    jumped = {(name, sku_of(o)) for name, o, _ in jumps}
    rows = {
        name: [o for o in offers if (name, sku_of(o)) not in jumped]
        for name, offers in good.items()
    }
    every = [*others, *(o for offers in last.values() for o in offers)]
    known, least = {sku_of(o): o for o in every}, cheapest_known(every)
    printed = {name: list(offers) for name, offers in rows.items()}
    before = {q.key: q for q in waiting}
    wholes: dict[str, tuple[Quarantined, ...]] = {}
    for name in (n for n in rows if n not in accepted):
        old = last.get(name, ())
        elsewhere = [o for other, offers in printed.items() if other != name for o in offers]
        new = new_cheapest(rows[name], known, least, is_first=not old)
        places = _waiting_places(name, new, elsewhere, released, before)
        held[name] += places
        waits = {sku_of(o) for o, _ in places}
        rows[name] = [o for o in rows[name] if sku_of(o) not in waits]
        listed = None if name in in_part else fresh[name]
        if whole := _waiting_list(name, rows[name], listed, old, least, elsewhere, before):
            rows[name], wholes[name] = [], whole
    return {name: _judged(rows[name], last.get(name, ()), held[name], wholes.get(name, ()))
            for name in fresh}  # fmt: skip


def _waiting_places(
    name: str,
    new: Sequence[tuple[Offer, Waits]],
    elsewhere: Sequence[Offer],
    released: Released,
    before: Mapping[str, Quarantined],
) -> list[tuple[Offer, Quarantined]]:
    """The new places that wait for a second statement."""
    by_place = {sku_of(o): o.usd_per_hour or 0.0 for o in elsewhere}
    waiting = []
    for o, why in new:
        row = replace(_quarantined(name, why.rule, why.sentence, o), measure=why.measure)
        if not (
            _is_said_again(row, before)
            or is_repeated(o.usd_per_hour or 0.0, by_place.get(sku_of(o)))
            or _is_released(name, o, released)
        ):
            waiting.append((o, row))
    return waiting


def _waiting_list(
    name: str,
    offers: Sequence[Offer],
    listed: Sequence[Offer] | None,
    last: Sequence[Offer],
    least: Mapping[tuple[str, str], float],
    elsewhere: Sequence[Offer],
    before: Mapping[str, Quarantined],
) -> tuple[Quarantined, ...]:
    """Why a whole list waits for a second statement; nothing if it does not. `listed` is None for a
    source that was not read whole."""
    change = change_of(offers, offers if listed is None else listed, last, least)
    found = [moved(name, offers, last, change)]
    if listed is not None:
        found.append(shrunk(name, listed, last, change))
    rows, waits = [], False
    for why in filter(None, found):
        row = Quarantined(source=name, rule=why.rule, sentence=why.sentence, measure=why.measure)
        is_same = _is_said_again(row, before)
        if is_same:
            row = replace(row, left_by=before[row.key].left_by)
        is_known = why.rule == "moved" and is_witnessed(offers, elsewhere)
        waits = waits or bool(row.left_by) or not (is_same or is_known)
        rows.append(row)
    return tuple(rows) if waits else ()


def _is_said_again(row: Quarantined, before: Mapping[str, Quarantined]) -> bool:
    """Whether the last refresh of the source held back about the same."""
    last = before.get(row.key)
    return last is not None and is_repeated(row.measure or 0.0, last.measure)


def _is_released(name: str, o: Offer, released: Released) -> bool:
    """Whether a person has released a price close to this one at its place."""
    prices = released.get((name, sku_of(o)), ())
    usd = o.usd_per_hour
    return usd is not None and usd > 0 and any(1 / AGREES <= usd / p <= AGREES for p in prices)


def _quarantined(source: str, rule: str, sentence: str, o: Offer) -> Quarantined:
    usd = o.usd_per_hour
    shown_usd = usd if usd is not None and math.isfinite(usd) else None
    return Quarantined(
        source=source, rule=rule, sentence=sentence, usd_per_hour=shown_usd, **sku_of(o)._asdict()
    )


def _one_price(
    name: str,
    offers: Iterable[Offer],
    held: list[tuple[Offer, Quarantined]],
    released: Released,
) -> list[Offer]:
    """One row per place; of two prices of a source for one place both are held back, unless a
    person has released one of them."""
    by_place: dict[Sku, list[Offer]] = defaultdict(list)
    for o in offers:
        by_place[sku_of(o)].append(o)
    good = []
    for same in by_place.values():
        prices = sorted({o.usd_per_hour for o in same if o.usd_per_hour is not None})
        if len(prices) <= 1:
            good.append(same[0])
            continue
        right = [o for o in same if _is_released(name, o, released)]
        if len({o.usd_per_hour for o in right}) == 1:
            good.append(right[0])
            continue
        texts = " and ".join(f"{p:g}" for p in prices[:3])
        for o in same:
            reason = f"{named(o)}: the same source prints it at {texts} USD/h."
            held.append((o, _quarantined(name, "duplicate", reason, o)))
    return good


def _jumps(
    good: Mapping[str, Sequence[Offer]],
    last: Mapping[str, Sequence[Offer]],
    others: Sequence[Offer],
    today: date,
    accepted: Collection[str],
) -> list[tuple[str, Offer, str]]:
    """New prices that are too far from the last one of their place and that no other source
    prints."""
    printed: dict[Sku, list[tuple[str, float]]] = defaultdict(list)
    for name, offers in good.items():
        for o in offers:
            printed[sku_of(o)].append((name, o.usd_per_hour or 0.0))
    elsewhere = {
        sku_of(o): o
        for o in sorted(others, key=lambda o: o.observed_at)
        if o.usd_per_hour and age_days(o.observed_at, today) <= COMPARED_DAYS
    }
    found = []
    for name, offers in good.items():
        before = {sku_of(o): o for o in last.get(name, ()) if o.usd_per_hour}
        for o in offers if name not in accepted else ():
            old = before.get(sku_of(o)) or elsewhere.get(sku_of(o))
            if old is None or old.usd_per_hour is None or o.usd_per_hour is None:
                continue
            ratio = o.usd_per_hour / old.usd_per_hour
            if 1 / JUMP <= ratio <= JUMP:
                continue
            witnesses = [usd for other, usd in printed[sku_of(o)] if other != name]
            if any(1 / AGREES <= o.usd_per_hour / usd <= AGREES for usd in witnesses):
                continue
            reason = f"it was {old.usd_per_hour:g} USD/h on {old.observed_at} and no second source"
            found.append((name, o, f"{named(o)}: {reason} prints the new price."))
    return found


def _judged(
    good: Sequence[Offer],
    last: Sequence[Offer],
    held: Sequence[tuple[Offer, Quarantined]],
    whole: tuple[Quarantined, ...] = (),
) -> Judged:
    """The good rows, and the last good row of every place whose new row is held back: of all places
    if the `whole` list is."""
    before = {sku_of(o): o for o in last}
    now = {sku_of(o): o for o in good}
    waiting = set(before) if whole else {sku_of(o) for o, _ in held} - set(now)
    kept_old = [before[p] for p in waiting if p in before]
    both = before.keys() & now.keys()
    return Judged(
        offers=(*good, *kept_old),
        quarantined=(*whole, *(q for _, q in held)),
        new=len(now.keys() - before.keys()),
        changed=sum(before[p].usd_per_hour != now[p].usd_per_hour for p in both),
        gone=len(before.keys() - now.keys() - waiting),
        kept_old=len(kept_old),
    )
