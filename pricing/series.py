"""Price over time: spells at one price, and gaps. Pure: no file, no store, no clock.

A price is known at the moments at which it was seen. Between two of them it is assumed to hold if
they are no further apart than `longest_gap` and the source neither failed nor dropped the machine
from its list; else there is a gap, and gaps are never filled.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import median, stdev
from typing import NamedTuple

from core.machine.offer import Offer


class Sku(NamedTuple):
    """What a price is for: one machine, at one place, bought one way."""

    provider: str
    instance_type: str
    accelerator: str
    gpu_count: int
    region: str
    purchase: str


_SKU_OF = attrgetter(*Sku._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The price of one source at one moment. Without a price, `why` is the reason."""

    at: datetime
    source: str
    usd_per_hour: float | None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """One price of one source, seen repeatedly without a gap."""

    source: str
    usd_per_hour: float
    first_at: datetime
    last_at: datetime  # last seen
    until: datetime  # start of the next price; `last_at` if a gap is in between


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A time in which the price is not known, with the reason."""

    source: str
    begins: datetime
    ends: datetime | None  # None: it was not seen again
    why: str


def sku_of(offer: Offer) -> Sku:
    """The SKU of an offer."""
    return Sku._make(_SKU_OF(offer))


def pieces(
    points: Iterable[Point], *, longest_gap: timedelta
) -> tuple[tuple[Spell, ...], tuple[Gap, ...]]:
    """The spells and the gaps of these points, source by source, oldest first."""
    spells: list[Spell] = []
    gaps: list[Gap] = []
    ordered = sorted(points, key=lambda p: (p.source, p.at))
    for _, of_source in groupby(ordered, key=lambda p: p.source):
        _cut(list(of_source), longest_gap, spells, gaps)
    return tuple(spells), tuple(gaps)


def _cut(
    points: Sequence[Point], longest_gap: timedelta, spells: list[Spell], gaps: list[Gap]
) -> None:
    """Split the points of one source, in order of time, where the price is not known."""
    before: Point | None = None  # the last point with a price
    why = ""  # set once the price was not seen
    first: Point | None = None  # of the spell that is being read
    for p in points:
        if p.usd_per_hour is None:
            why = why or p.why
            continue
        if before is None or first is None:
            before = first = p
            why = ""
            continue
        if not why and p.at - before.at > longest_gap:
            why = "no refresh"
        if why or p.usd_per_hour != before.usd_per_hour:
            spells.append(_spell(first, before, until=before.at if why else p.at))
            first = p
        if why:
            gaps.append(Gap(source=p.source, begins=before.at, ends=p.at, why=why))
            why = ""
        before = p
    if before is not None and first is not None:
        spells.append(_spell(first, before, until=before.at))
        if why:
            gaps.append(Gap(source=before.source, begins=before.at, ends=None, why=why))


def _spell(first: Point, last: Point, *, until: datetime) -> Spell:
    return Spell(
        source=last.source,
        usd_per_hour=last.usd_per_hour or 0.0,
        first_at=first.at,
        last_at=last.at,
        until=until,
    )


def daily(spells: Iterable[Spell]) -> dict[date, float]:
    """USD per hour at the end of each day (UTC) on which it is known, of one source."""
    prices: dict[date, float] = {}
    for s in sorted(spells, key=lambda s: s.first_at):
        day = s.first_at.date()
        while day <= s.until.date():
            prices[day] = s.usd_per_hour
            day += timedelta(days=1)
    return prices


def volatility(spells: Sequence[Spell]) -> float | None:
    """Standard deviation of the log change of a price from one known day to the next.

    Taken from the source with most known days; None with fewer than three changes. The day after a
    gap has no previous day. 0.01 is about 1% per day; times the square root of 365 it is a yearly
    figure.
    """
    by_source = _daily_by_source(spells)
    if not by_source:
        return None
    prices = max(by_source.values(), key=len)
    changes = [math.log(b / a) for a, b in _next_days(prices)]
    return stdev(changes) if len(changes) >= 3 else None


def _next_days(prices: dict[date, float]) -> Iterator[tuple[float, float]]:
    for a, b in pairwise(sorted(prices)):
        if b - a == timedelta(days=1):
            yield prices[a], prices[b]


def ratios(spot: Sequence[Spell], on_demand: Sequence[Spell]) -> list[tuple[date, float]]:
    """Spot over on-demand by day, on the days on which both are known.

    Where several sources print one of them, their median counts.
    """
    a, b = _median_daily(spot), _median_daily(on_demand)
    return [(day, a[day] / b[day]) for day in sorted(a.keys() & b.keys())]


def _median_daily(spells: Sequence[Spell]) -> dict[date, float]:
    by_day: dict[date, list[float]] = defaultdict(list)
    for prices in _daily_by_source(spells).values():
        for day, usd in prices.items():
            by_day[day].append(usd)
    return {day: median(prices) for day, prices in by_day.items()}


def _daily_by_source(spells: Sequence[Spell]) -> dict[str, dict[date, float]]:
    by_source: dict[str, list[Spell]] = defaultdict(list)
    for s in spells:
        by_source[s.source].append(s)
    return {source: daily(found) for source, found in by_source.items()}
