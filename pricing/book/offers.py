"""Price book applied to the list prices. Pure: no file, no clock.

A later row of the book wins over an earlier one. Prices without a row stay as listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from core.machine.offer import Offer, Purchase
from core.machine.rented import Terms
from core.money.other_costs import GB, MONTH_H, egress_usd, storage_usd
from pricing.book.cells import ANY
from pricing.book.rows import Commitment, Credit, Egress, Owned, PriceBook, Rate, Row, Storage

Place = tuple[object, ...]

OWN = "own"  # the provider of owned clusters
SOURCE = "price book "  # begins the source of every offer from a book
QUOTE = "quote"  # source of every offer that the user typed in
ON_NO_LIST = "on no list"  # begins the note of an offer that only the book has


@dataclass(frozen=True, slots=True, kw_only=True)
class BookedOffers:
    """Offers at the book's prices, with notes on them."""

    offers: tuple[Offer, ...]
    largest: dict[Place, int | None]  # GPUs of an owned cluster, of a rate with a most
    idle_lines: tuple[int, ...]  # lines of rows that match no listed offer
    without_network: tuple[int, ...]  # lines of machines whose network is assumed


def is_booked(offer: Offer) -> bool:
    """Whether this price is the user's own: from a price book or a quote."""
    return offer.source.startswith(SOURCE) or is_quote(offer)


def is_quote(offer: Offer) -> bool:
    """Whether this price is a quote that the scenario holds."""
    return offer.source == QUOTE


def is_on_no_list(offer: Offer) -> bool:
    """Whether only the user knows of this offer."""
    return is_quote(offer) or (is_booked(offer) and offer.note.startswith(ON_NO_LIST))


def booked(book: PriceBook, listed: Sequence[Offer], today: date) -> BookedOffers:
    """The listed offers at the book's prices, then the offers that only the book has."""
    offers = {place(o): o for o in listed}
    idle: list[int] = []
    largest: dict[Place, int | None] = {}
    without_network: list[int] = []
    for row in book.valid(Rate, today):
        matched = [o for o in listed if row.purchase in (ANY, o.purchase) and _covers(row, o)]
        priced = [o for o in matched if o.usd_per_hour is not None]
        found = [_rated(book, row, o) for o in priced]
        if not priced and (found := _alone(book, row)) and row.scale_out_gbit_per_s is None:
            without_network.append(row.line)
        largest |= {place(o): row.most_gpus for o in found}
        idle += [] if found else [row.line]
        offers |= {place(o): o for o in found}
    for row in book.valid(Commitment, today):
        found = [_committed(book, row, o) for o in listed if _is_base(row, o)]
        idle += [] if found else [row.line]
        offers |= {place(o): o for o in found}
    for own in book.valid(Owned, today):
        cluster = _owned(book, own)
        offers[place(cluster)] = cluster
        largest[place(cluster)] = own.num_gpus
        without_network += [] if own.scale_out_gbit_per_s else [own.line]
    return BookedOffers(
        offers=tuple(offers.values()),
        largest=largest,
        idle_lines=tuple(idle),
        without_network=tuple(without_network),
    )


def terms_of(
    book: PriceBook, provider: str, region: str, today: date, *, checkpoint_bytes: float,
    kept_checkpoints: int | None = None, data_bytes: float | None = None,
) -> Terms:  # fmt: skip
    """What a run at this place pays in addition to its machines. Rows of one kind add up.

    `kept_checkpoints` and `data_bytes` replace the amounts of the storage rows, at the highest
    price of these rows.
    """

    def about(kind: type[Row]) -> list[Any]:
        return [r for r in book.valid(kind, today) if _is_at(r, provider, region)]

    def hourly(stored_bytes: float, usd_per_gb_month: float) -> float:
        usd = storage_usd(
            stored_bytes=stored_bytes, usd_per_gb_month=usd_per_gb_month, hours=MONTH_H
        )
        return float(usd) / MONTH_H

    stored, moved = about(Storage), about(Egress)
    highest = max((r.usd_per_gb_month for r in stored), default=0.0)
    checkpoints = sum(hourly(r.checkpoints * checkpoint_bytes, r.usd_per_gb_month) for r in stored)
    data = sum(hourly(r.data_gb * GB, r.usd_per_gb_month) for r in stored)
    if kept_checkpoints is not None:
        checkpoints = hourly(kept_checkpoints * checkpoint_bytes, highest)
    if data_bytes is not None:
        data = hourly(data_bytes, highest)
    egress = (
        egress_usd(
            moved_bytes=r.data_gb * GB + r.checkpoints * checkpoint_bytes, usd_per_gb=r.usd_per_gb
        )
        for r in moved
    )
    return Terms(
        egress_usd=sum(map(float, egress)),
        checkpoint_usd_per_hour=checkpoints,
        data_usd_per_hour=data,
        # Credits apply to rented machines only, unless a row names the owned provider.
        credit_usd=sum(r.usd for r in about(Credit) if provider != OWN or r.provider == OWN),
    )


def place(o: Offer) -> Place:
    """What is sold and where, without the price."""
    return (o.provider, o.instance_type, o.accelerator, o.gpu_count, o.region, o.purchase)


def _is_at(row: Any, provider: str, region: str) -> bool:
    return row.provider in (ANY, provider) and getattr(row, "region", ANY) in (ANY, region)


def _covers(row: Rate | Commitment, o: Offer) -> bool:
    count = getattr(row, "gpu_count", None)
    return (
        _is_at(row, o.provider, o.region)
        and row.instance_type in (ANY, o.instance_type)
        and row.accelerator in (ANY, o.accelerator)
        and count in (None, o.gpu_count)
    )


def _noted(row: Row, reason: str) -> str:
    until = f", until {row.valid_to}" if row.valid_to else ""
    return "; ".join(t for t in (f"{reason}{until}", row.note) if t)


def _off_list(book: PriceBook, row: Rate | Commitment, o: Offer, purchase: Purchase) -> Offer:
    """An offer at the price of the row: dollars are dated to the day the book was added, a discount
    to the day of the list price."""
    listed = o.usd_per_hour or 0.0
    if row.discount is not None:
        usd, day = listed * (1 - row.discount), o.observed_at
        share = f"{row.discount * 100:.4g}%"
        reason = f"{share} off the {o.purchase} list price of {listed:g} USD/h ({o.source})"
    else:
        whole = getattr(row, "usd_per_hour", None)
        usd = whole if whole is not None else (row.usd_per_gpu_hour or 0.0) * o.gpu_count
        day, reason = book.added_on.isoformat(), f"instead of {listed:g} USD/h on the list"
    return replace(
        o,
        purchase=purchase,
        usd_per_hour=usd,
        observed_at=day,
        source=SOURCE + book.name,
        quality="high",
        note=_noted(row, reason),
    )


def _rated(book: PriceBook, row: Rate, o: Offer) -> Offer:
    network = row.scale_out_gbit_per_s or o.scale_out_gbit_per_s
    return replace(_off_list(book, row, o, o.purchase), scale_out_gbit_per_s=network)


def _alone(book: PriceBook, row: Rate) -> list[Offer]:
    """A rate without a listed offer: a new offer, where the row describes the machine well
    enough."""
    if (
        row.discount is not None
        or row.gpu_count is None
        or ANY in (row.provider, row.instance_type)
    ):
        return []
    usd = row.usd_per_hour or (row.usd_per_gpu_hour or 0.0) * row.gpu_count
    purchase: Any = row.purchase
    return [
        _made(book, row, ON_NO_LIST, provider=row.provider, instance_type=row.instance_type,
              gpu_count=row.gpu_count, purchase=purchase, usd_per_hour=usd)
    ]  # fmt: skip


def _is_base(row: Commitment, o: Offer) -> bool:
    return o.purchase == "on_demand" and o.usd_per_hour is not None and _covers(row, o)


def _committed(book: PriceBook, row: Commitment, o: Offer) -> Offer:
    return _off_list(book, row, o, row.purchase)


def _owned(book: PriceBook, row: Owned) -> Offer:
    reason = (
        f"{row.num_gpus} GPUs: {row.capex_usd:g} USD over {row.depreciation_years:g} years, "
        f"{row.power_kw:g} kW at PUE {row.pue:g}, used {row.utilisation:.0%} of the time"
    )
    return _made(
        book, row, reason, provider=OWN, instance_type=row.name, gpu_count=row.gpus_per_node,
        purchase="owned", usd_per_hour=row.usd_per_gpu_hour * row.gpus_per_node,
    )  # fmt: skip


def _made(book: PriceBook, row: Rate | Owned, reason: str, **what: Any) -> Offer:
    return Offer(
        accelerator=row.accelerator,
        region=row.region,
        scale_out_gbit_per_s=row.scale_out_gbit_per_s,
        observed_at=max(book.added_on, row.valid_from or book.added_on).isoformat(),
        source=SOURCE + book.name,
        quality="high",
        note=_noted(row, reason),
        **what,
    )
