"""Oracle Cloud list prices of GPU shapes, without a key.

One price per GPU-hour and one for all regions. The shapes here are bare metal, which has no
preemptible price (that is half the list price, of virtual machines only).
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from core.machine.offer import Offer
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers.boundary import Raw, document, offer, only_usd, parsed

URL = "https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/?currencyCode=USD"
# Part number -> the shape that is billed by it, its accelerator and how many it has.
PARTS = {
    "B98415": ("BM.GPU.H100.8", "H100-80GB-SXM", 8),
    "B110519": ("BM.GPU.H200.8", "H200-141GB-SXM", 8),
    "B95907": ("BM.GPU.A100-v2.8", "A100-80GB-SXM", 8),
    "B109479": ("BM.GPU.L40S.4", "L40S", 4),
    "B109485": ("BM.GPU.MI300X.8", "MI300X", 8),
    "B110978": ("BM.GPU.B200.8", "B200-180GB", 8),
    "B110979": ("BM.GPU.GB200.4", "GB200", 4),
    "B112237": ("BM.GPU.B300.8", "B300", 8),
    "B112140": ("BM.GPU.GB300.4", "GB300", 4),
    "B111758": ("BM.GPU.MI355X.8", "MI355X", 8),
}
METRIC = "GPU PER HOUR"
PAY_AS_YOU_GO = "PAY_AS_YOU_GO"


class Price(Raw):
    model: str
    value: float


class Localization(Raw):
    currencyCode: str
    prices: list[Price]


class Product(Raw):
    partNumber: str
    metricName: str
    localizations: list[Localization] = Field(alias="currencyCodeLocalizations")


class Answer(Raw):
    items: list[dict[str, object]]


def fetch(session: Session) -> Iterable[Offer]:
    """One on-demand offer per GPU shape."""
    answer = document(Answer, session.json(URL))
    ours = [i for i in answer.items if str(i.get("partNumber")) in PARTS]
    for _ in range(len(answer.items) - len(ours)):
        session.leave_out("not a GPU shape")
    for product in parsed(session, Product, ours):
        shape, accelerator, count = PARTS[product.partNumber]
        if product.metricName.upper() != METRIC:
            session.refuse(shape, f"its metric is {product.metricName[:30]!r}, not GPU per hour.")
            continue
        for local in product.localizations:
            if not only_usd(session, shape, local.currencyCode):
                continue
            for price in (p for p in local.prices if p.model == PAY_AS_YOU_GO):
                yield from offer(
                    session,
                    provider="oci",
                    instance_type=shape,
                    region=ANY_REGION,
                    purchase="on_demand",
                    usd_per_hour=price.value * count,
                    observed_at=session.today,
                    source=f"Oracle price list, part {product.partNumber}",
                    quality="high",
                    gpu_name=accelerator,
                    gpu_count=count,
                    note=f"{price.value:g} USD per GPU-hour, one price for all regions",
                )
