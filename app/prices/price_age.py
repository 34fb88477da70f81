"""Old prices on the Plan page, in words: how old they are, what a refresh asks and takes, what it
changed.

The sources are imported where they are named: it takes a third of a second.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from app.document import format as fmt
from app.document.vocabulary import machine
from core.errors import FactError
from core.search.plan import Answer
from pricing.disk import prices_folder
from pricing.offers import age_days, newest_per_place, snapshot
from pricing.series import Sku, sku_of

if TYPE_CHECKING:
    from pricing.source_state import State

NOTHING_SENT = "Only requests for price lists are sent: nothing of your scenario or your prices."


def days_old(snapshot_id: str, today: dt.date) -> int:
    """Days since the newest price of a snapshot, at most."""
    return age_days(snapshot(snapshot_id).newest, today)


def age_sentence(snapshot_id: str, today: dt.date) -> str:
    """How old the newest price is."""
    found = snapshot(snapshot_id)
    days = fmt.count(age_days(found.newest, today))
    return f"The newest of these prices is {days} days old ({found.newest})."


def refresh_sentence() -> str:
    """Which sources a refresh asks here, and about how long it takes."""
    from pricing.source_state import State, read_state

    try:
        state = read_state(prices_folder())
    except FactError:
        state = State()
    return f"{asked_sentence(os.environ)} {length_sentence(state)}"


def asked_sentence(environ: Mapping[str, str]) -> str:
    """The sources that answer without a key, and those whose key this server has."""
    from pricing.sources import SOURCES

    free = [s.name for s in SOURCES if not s.key]
    paid = [s.name for s in SOURCES if s.key and environ.get(s.key, "").strip()]
    keyed = f", and with a key of this server {', '.join(paid)}" if paid else ""
    return f"A refresh asks {len(free)} sources without a key ({', '.join(free)}){keyed}."


def length_sentence(state: State) -> str:
    """About how long a refresh takes: as the last one, else the limits of its sources, which are
    asked at the same time."""
    from pricing.sources import SOURCES

    took_s = max((s.seconds for s in state.sources.values()), default=0.0)
    if took_s > 0:
        return f"It takes about {_length(took_s)}, as the last time."
    limits = {s.name: s.deadline_s for s in SOURCES if not s.key}
    slowest = max(limits, key=limits.__getitem__)
    usual_s = median(limits.values())
    return f"Most answer within {_length(usual_s)}, {slowest} within {_length(limits[slowest])}."


def _length(s: float) -> str:
    """Seconds or minutes in words."""
    n, unit = (max(1, round(s)), "second") if s < 90 else (round(s / 60), "minute")
    return f"{n} {unit}" if n == 1 else f"{n} {unit}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """How many places have another price in a newer snapshot, are new, or are gone."""

    moved: int
    new: int
    gone: int


def changed(before_id: str, after_id: str) -> Changed:
    """What changed from one snapshot to another, by place."""
    before, after = _by_place(before_id), _by_place(after_id)
    both = before.keys() & after.keys()
    return Changed(
        moved=sum(before[p] != after[p] for p in both),
        new=len(after.keys() - before.keys()),
        gone=len(before.keys() - after.keys()),
    )


def _by_place(snapshot_id: str) -> dict[Sku, float | None]:
    return {sku_of(o): o.usd_per_hour for o in newest_per_place(snapshot(snapshot_id).offers)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommended:
    """The recommended plan of an answer in short."""

    usd: float | None
    machine: str  # '': there was no plan


def recommended(answer: Answer) -> Recommended:
    """The recommended plan of an answer."""
    if not answer.plans:
        return Recommended(usd=None, machine="")
    plan = answer.plans[0]
    return Recommended(usd=plan.expected_usd, machine=machine(plan))


def changed_sentence(before: Recommended, after: Recommended, found: Changed) -> str:
    """What a refresh changed: the cost before and after, the prices, the recommended plan.

    >>> a = Recommended(usd=4796.0, machine="4 x B200")
    >>> b = Recommended(usd=4612.0, machine="8 x H100")
    >>> changed_sentence(a, b, Changed(moved=31, new=4, gone=0))
    '$4,796 -> $4,612: 31 prices moved, 4 new; recommended is now 8 x H100, it was 4 x B200.'
    """
    costs = f"{_cost(before)} -> {_cost(after)}"
    counts = [f"{fmt.count(found.moved)} {'price' if found.moved == 1 else 'prices'} moved"]
    counts += [f"{fmt.count(found.new)} new"] if found.new else []
    counts += [f"{fmt.count(found.gone)} gone"] if found.gone else []
    if before.machine == after.machine:
        plan = f"recommended is still {after.machine or 'none'}"
    elif not after.machine:
        plan = f"there is no plan now, recommended was {before.machine}"
    else:
        was = f", it was {before.machine}" if before.machine else ""
        plan = f"recommended is now {after.machine}{was}"
    return f"{costs}: {', '.join(counts)}; {plan}."


def _cost(one: Recommended) -> str:
    return "no price" if one.usd is None else fmt.usd(one.usd)
