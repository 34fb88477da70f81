"""Azure retail prices: on-demand, spot, reservations and savings plans, without a key.

OData pages of up to 1,000 rows, region by region. Traps: rows of Windows, Cloud Services, dedicated
hosts, Low Priority and promotions are mixed with the others; a reservation prints the price of its
whole term with the unit '1 Hour'; savings plans come only with the preview version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from pydantic import Field

from core.errors import shown
from core.machine.offer import Offer, Purchase
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.providers.boundary import (
    YEAR_H,
    Raw,
    document,
    each_region,
    known_machine,
    offer,
    only_usd,
    parsed,
)

URL = "https://prices.azure.com/api/retail/prices"
VERSION = "2023-01-01-preview"
REGIONS_VARIABLE = "RUNCAST_AZURE_REGIONS"  # comma-separated, instead of these
REGIONS = (
    "eastus", "eastus2", "southcentralus", "westus", "westus2", "westus3", "northeurope",
    "westeurope", "swedencentral", "uksouth", "francecentral", "japaneast", "australiaeast",
    "canadacentral",
)  # fmt: skip
MAX_PAGES = 200
TERMS: dict[str, tuple[Purchase, int]] = {
    "1 Year": ("reserved_1y", 1),
    "3 Years": ("reserved_3y", 3),
}
NOT_OURS = (" Windows", "Cloud Services", "CloudServices", "Dedicated")
_REGION = re.compile(r"[a-z0-9]+")


class Plan(Raw):
    unitPrice: float
    retailPrice: float
    term: str


class Item(Raw):
    currencyCode: str
    retailPrice: float
    unitOfMeasure: str
    type: str
    armSkuName: str
    armRegionName: str
    productName: str
    meterName: str
    skuName: str = ""
    reservationTerm: str = ""
    isPrimaryMeterRegion: bool = True
    savingsPlan: list[Plan] = Field(default_factory=list)


class Page(Raw):
    Items: list[dict[str, object]]
    NextPageLink: str | None = None


def fetch(session: Session) -> Iterable[Offer]:
    """Offers of every region; a region that fails is a failed part, whose old rows stay."""
    return each_region(
        session,
        _offers,
        provider="azure",
        regions=REGIONS,
        variable=REGIONS_VARIABLE,
        shape=_REGION,
    )


def _offers(session: Session, region: str) -> Iterator[Offer]:
    reserved: dict[tuple[str, Purchase], Offer] = {}
    planned: dict[tuple[str, Purchase], Offer] = {}
    for item in parsed(session, Item, _items(session, region)):
        if not _is_ours(session, item):
            continue
        if item.type == "Reservation":
            for o in _reserved(session, item):
                reserved[o.instance_type, o.purchase] = o
            continue
        spot = item.meterName.endswith(" Spot") or item.skuName.endswith(" Spot")
        yield from _hourly(session, item, "spot" if spot else "on_demand", item.retailPrice)
        for plan in item.savingsPlan if not spot else ():
            purchase, _ = TERMS.get(plan.term, (None, 0))
            if purchase is None:
                session.leave_out(f"a savings plan of {shown(plan.term)}")
                continue
            note = "savings plan for compute"
            for o in _hourly(session, item, purchase, plan.retailPrice, note):
                planned[o.instance_type, o.purchase] = o
    # Of the two commitments to a machine, the reservation is for this machine only.
    yield from (planned | reserved).values()


def _items(session: Session, region: str) -> Iterator[dict[str, object]]:
    wanted = (
        "serviceName eq 'Virtual Machines' and contains(armSkuName, 'Standard_N') "
        f"and armRegionName eq '{region}'"
    )
    url = f"{URL}?api-version={VERSION}&currencyCode='USD'&$filter={quote(wanted)}"
    seen = {url}
    link: str | None = url
    while link:
        page = document(Page, session.json(link))
        yield from page.Items
        link = session.follow(page.NextPageLink, of=URL) if page.NextPageLink else None
        if link in seen or len(seen) > MAX_PAGES:
            raise SourceError(f"Its pages do not end: {len(seen)} were read.")
        if link:
            seen.add(link)


def _is_ours(session: Session, item: Item) -> bool:
    """Whether a row is Linux on a known, shared machine that is sold now, by the hour."""
    product, sku = item.productName, item.armSkuName
    if known_machine("azure", sku) is None:
        session.leave_out("no machine that we know")
    elif any(text in product for text in NOT_OURS) or product.endswith(" Win"):
        session.leave_out("Windows, Cloud Services or a dedicated host")
    elif "Low Priority" in item.meterName or "Low Priority" in item.skuName:
        session.leave_out("Low Priority, which is retired")
    elif sku.endswith("_Promo"):
        session.leave_out("a promotion")
    elif item.type not in ("Consumption", "Reservation"):
        session.leave_out(f"prices of type {shown(item.type)}")
    elif not item.isPrimaryMeterRegion:
        session.leave_out("the second row of a meter that bills in several regions")
    elif item.unitOfMeasure != "1 Hour":
        session.refuse(sku, f"its unit is {shown(item.unitOfMeasure)}, not '1 Hour'.")
    else:
        return only_usd(session, sku, item.currencyCode)
    return False


def _reserved(session: Session, item: Item) -> Iterator[Offer]:
    """Reserved offers: the price of the whole term over its hours."""
    if item.reservationTerm not in TERMS:
        session.leave_out(f"a reservation of {shown(item.reservationTerm)}")
        return
    purchase, years = TERMS[item.reservationTerm]
    note = f"reservation: {item.retailPrice:g} USD for {item.reservationTerm}"
    yield from _hourly(session, item, purchase, item.retailPrice / (years * YEAR_H), note)


def _hourly(
    session: Session, item: Item, purchase: Purchase, usd: float, note: str = ""
) -> Iterator[Offer]:
    return offer(
        session,
        provider="azure",
        instance_type=item.armSkuName,
        region=item.armRegionName,
        purchase=purchase,
        usd_per_hour=usd,
        observed_at=session.today,
        source="Azure retail prices",
        quality="high",
        note=note,
    )
