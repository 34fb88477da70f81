"""Rows of feeds become offers: shapes are checked, and names are made canonical.

A row of the wrong shape is refused with its reason; if most rows are refused, the feed has changed
and the whole source fails. The machine of a row is looked up (hardware/instances.csv, then the
bundled prices) before its GPU name is interpreted, and a GPU count that disagrees is refused.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from core.errors import shown
from core.machine.offer import Offer, Purchase
from hardware.instances import find_instance
from hardware.names import canonical_from_feed
from pricing import offers as snapshots
from pricing.bundle import DECISIONS_CSV, Decision, decisions
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.integrity import price_bands

MONTH_H = 730.0  # of price lists that print a month
YEAR_H = 8760.0
MOST_GPUS = 1024  # of one instance: a rack has 72 today
CHANGED = 0.5  # share of refused rows above which the feed must have changed
_MEMORY = re.compile(r"\(?\s*\b(\d{2,3}(?:\.\d)?)\s?GB\b", re.IGNORECASE)
_FORM = re.compile(r"\b(SXM|PCI-?E|NVL)\w*", re.IGNORECASE)
# Names go into tables, links and files: one line of plain characters, no markup, no option.
_NAME = re.compile(r"\*|[A-Za-z0-9][\w .:/()+,-]{0,79}", re.ASCII)
Machines = Mapping[tuple[str, str], tuple[str, int]]  # provider and type: accelerator and count
_given: Machines | None = None
_MAKER = re.compile(r"^(?:NVIDIA|AMD|Tesla|Instinct)\s+", re.IGNORECASE)


def each_region(
    session: Session,
    fetch: Callable[[Session, str], Iterable[Offer]],
    *,
    provider: str,
    regions: Sequence[str],
    variable: str,
    shape: re.Pattern[str],
) -> Iterator[Offer]:
    """Offers of every region, or of those in the environment variable `variable`, comma-separated.
    A region that fails is a failed part: its old rows stay, and the others are read."""
    named = [r.strip() for r in session.environ.get(variable, "").split(",") if r.strip()]
    for region in named or regions:
        try:
            if not shape.fullmatch(region):
                raise SourceError(f"{variable} names {region[:30]!r}, not a region.")
            yield from fetch(session, region)
        except SourceError as e:
            session.part_failed(f"{region}: {e}", provider=provider, region=region)


class Raw(BaseModel):
    """Base of the documented fields of one row: other fields are ignored, NaN is refused."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, str_max_length=2000)


R = TypeVar("R", bound=Raw)


def parsed(session: Session, model: type[R], rows: Iterable[Any]) -> Iterator[R]:
    """Rows of the documented shape; others are refused, and too many of them are an error."""
    bad: Counter[str] = Counter()
    total = 0
    for row in rows:
        total += 1
        try:
            good = model.model_validate(row)
        except ValidationError as e:
            why = _why(e)
            bad[why] += 1
            session.refuse(row, why)
            continue
        yield good
    if total and bad.total() > CHANGED * total:
        raise SourceError(
            f"Its shape has changed: {bad.total()} of {total} rows fail, most often because "
            f"{bad.most_common(1)[0][0]}"
        )


def document(model: type[R], value: Any) -> R:
    """The outermost object of an answer; `SourceError` names what is missing."""
    try:
        return model.model_validate(value)
    except ValidationError as e:
        raise SourceError(f"Its shape has changed: {_why(e)}") from None


def _why(e: ValidationError) -> str:
    first = e.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(p) for p in first["loc"]) or "the row"
    return f"{where}: {first['msg'].lower()}."


def accelerator_of(name: str, memory_gib: float | None = None, form: str = "") -> str | None:
    """The canonical id of the GPU name of a feed, or None where it is ambiguous or unknown.

    >>> accelerator_of("H100 (80 GB SXM5)"), accelerator_of("1x H200 SXM5 141GB")
    ('H100-80GB-SXM', 'H200-141GB-SXM')
    >>> accelerator_of("A100"), accelerator_of("Tesla V100 16GB")
    (None, 'V100-16GB')
    """
    printed = re.sub(r"^\d+x\s+", "", name.strip())
    memory = _MEMORY.search(printed)
    factor = _FORM.search(printed)
    size_gib = memory_gib or (float(memory[1]) if memory else None)
    bare = _MAKER.sub("", _FORM.sub("", _MEMORY.sub("", printed))).strip(" ()")
    for spelling, shape in (
        (printed, form),
        (_MAKER.sub("", printed), form),
        (bare, form or (factor[1] if factor else "")),
    ):
        if found := canonical_from_feed(spelling, size_gib, shape or None):
            return found
    return None


@cache
def known_machine(provider: str, instance_type: str) -> tuple[str, int] | None:
    """Accelerator and count of a machine in our tables."""
    instance = find_instance(provider, instance_type)
    if instance is not None:
        return instance.accelerator, instance.gpu_count
    machines = bundled_machines() if _given is None else _given
    return machines.get((provider, instance_type))


def use_machines(machines: Machines) -> None:
    """Look machines up in this table from now on, so that no snapshot is read."""
    global _given
    _given = machines


@cache
def bundled_machines() -> Machines:
    """Machines that have one accelerator and count in all rows of every bundled snapshot."""
    seen: dict[tuple[str, str], set[tuple[str, int]]] = defaultdict(set)
    for snapshot_id in snapshots.snapshot_ids(folder=snapshots.SNAPSHOTS):
        for o in snapshots.snapshot(snapshot_id, folder=snapshots.SNAPSHOTS).offers:
            seen[o.provider, o.instance_type].add((o.accelerator, o.gpu_count))
    return {machine: next(iter(what)) for machine, what in seen.items() if len(what) == 1}


@cache
def _never_sold() -> tuple[Decision, ...]:
    """Decisions on prices that are printed but not sold, in all regions and on all days."""
    everywhere = decisions(DECISIONS_CSV.read_text(encoding="utf-8"))
    return tuple(
        d for d in everywhere if d.action == "leave_out" and d.as_of == "*" and d.region == "*"
    )


@cache
def _is_never_sold(provider: str, instance_type: str, accelerator: str, purchase: str) -> bool:
    row = {
        "provider": provider, "instance_type": instance_type, "accelerator": accelerator,
        "region": "", "as_of": "",
    }  # fmt: skip
    return any(d.covers(row, purchase) for d in _never_sold())


def offer(
    session: Session,
    *,
    provider: str,
    instance_type: str,
    region: str,
    purchase: Purchase,
    usd_per_hour: float,
    observed_at: date,
    source: str,
    quality: str,
    gpu_name: str = "",
    gpu_count: int | None = None,
    gpu_memory_gib: float | None = None,
    form: str = "",
    note: str = "",
) -> Iterator[Offer]:
    """One offer, or none with its reason counted. The price is of the whole instance."""
    known = known_machine(provider, instance_type)
    accelerator = known[0] if known else accelerator_of(gpu_name, gpu_memory_gib, form)
    count = gpu_count if gpu_count is not None else (known[1] if known else None)
    if count == 0:
        session.leave_out("no GPU")
    elif not (_NAME.fullmatch(instance_type) and _NAME.fullmatch(region)):
        session.refuse(f"{instance_type} {region}", "its name or region is not plain text.")
    elif count is not None and not 0 < count <= MOST_GPUS:
        session.refuse(f"{provider} {instance_type} {region}", "its GPU count is not 1 to 1024.")
    elif not math.isfinite(usd_per_hour):
        session.refuse(f"{provider} {instance_type} {region}", "its price is not a number.")
    elif accelerator is None or count is None:
        session.leave_out(f"which GPU cannot be told: {shown(gpu_name or instance_type)}")
    elif (accelerator, "spot" if purchase == "spot" else "committed") not in price_bands():
        session.leave_out(f"no band of believable prices: {accelerator}")
    elif known and known[1] != count:
        session.refuse(
            f"{provider} {instance_type} {region}",
            f"it has {count} GPUs here and {known[1]} in the table of machines.",
        )
    else:
        if _is_never_sold(provider, instance_type, accelerator, purchase):
            session.leave_out(f"printed and not sold: {provider} {instance_type} {purchase}")
            return
        yield Offer(
            provider=provider,
            instance_type=instance_type,
            accelerator=accelerator,
            gpu_count=count,
            region=region,
            purchase=purchase,
            usd_per_hour=usd_per_hour,
            scale_out_gbit_per_s=None,
            observed_at=observed_at.isoformat(),
            source=source,
            quality=quality,
            note=note,
        )


def cheapest_zone(offers: Iterable[Offer]) -> Iterator[Offer]:
    """One offer per place, for a feed with a row per zone: the cheapest, with a note."""
    zones: dict[tuple[object, ...], list[Offer]] = defaultdict(list)
    for o in offers:
        place = (o.provider, o.instance_type, o.accelerator, o.gpu_count, o.region, o.purchase)
        zones[place].append(o)
    for same in zones.values():
        prices = [o.usd_per_hour or 0.0 for o in same]
        cheapest = same[prices.index(min(prices))]
        if max(prices) == min(prices):
            yield cheapest
        else:
            cheapest_of = (
                f"the cheapest of {len(same)} zones, {min(prices):g} to {max(prices):g} USD/h"
            )
            yield replace(cheapest, note="; ".join(n for n in (cheapest.note, cheapest_of) if n))


def only_usd(session: Session, row: object, currency: str) -> bool:
    """Whether a price is in dollars; a row in another currency is refused."""
    if currency.isascii() and currency.strip().upper() == "USD":  # U+017F is an S in upper case
        return True
    session.refuse(row, f"its currency is {shown(currency)}, not USD.")
    return False
