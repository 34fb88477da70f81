"""GCP machines assembled from the SKUs of the Cloud Billing catalogue, with an API key.

GCP prices a machine by vCPU-hour, GiB-hour and GPU-hour; the three are added for the machines whose
SKUs are listed here. Local SSD is a separate SKU and is left out of the sum, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import Field

from core.machine.offer import Offer, Purchase
from hardware.instances import Instance, find_instance
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.providers.boundary import Raw, document, offer, parsed

URL = "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus"
KEY = "GCP_API_KEY"
MAX_PAGES = 40
USAGE: dict[str, Purchase] = {"OnDemand": "on_demand", "Preemptible": "spot"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine and the beginnings of the descriptions of its three SKUs."""

    name: str
    core: str
    ram: str
    gpu: str


_A2 = {"core": "A2 Instance Core", "ram": "A2 Instance Ram"}
_A3 = {"core": "A3 Instance Core", "ram": "A3 Instance Ram", "gpu": "Nvidia H100 80GB GPU"}
MACHINES = (
    *(Machine(name=f"a2-highgpu-{n}g", gpu="Nvidia Tesla A100 GPU", **_A2) for n in (1, 2, 4, 8)),
    Machine(name="a2-megagpu-16g", gpu="Nvidia Tesla A100 GPU", **_A2),
    *(
        Machine(name=f"a2-ultragpu-{n}g", gpu="Nvidia Tesla A100 80GB GPU", **_A2)
        for n in (1, 2, 4, 8)
    ),
    Machine(name="a3-highgpu-8g", **_A3),
)
_WANTED = {s for m in MACHINES for s in (m.core, m.ram, m.gpu)}
_SPOT = re.compile(r"^Spot Preemptible ")
_PLACE = re.compile(r" (?:attached to Spot Preemptible VMs )?running in .*$")


class UnitPrice(Raw):
    currencyCode: str = "USD"
    units: int = Field(default=0, ge=0, le=10**6)
    nanos: int = Field(default=0, ge=0, lt=10**9)


class Rate(Raw):
    startUsageAmount: float = 0.0
    unitPrice: UnitPrice


class Expression(Raw):
    usageUnit: str
    tieredRates: list[Rate]


class Pricing(Raw):
    pricingExpression: Expression


class Category(Raw):
    usageType: str


class Sku(Raw):
    description: str
    category: Category
    serviceRegions: list[str]
    pricingInfo: list[Pricing] = Field(min_length=1)


class Page(Raw):
    skus: list[dict[str, object]]
    nextPageToken: str = ""


Parts = dict[tuple[str, Purchase, str], float]  # (beginning, purchase, region) -> USD per unit


def fetch(session: Session) -> Iterable[Offer]:
    """Offers of machines whose three SKUs have a price in a region."""
    parts: Parts = {}
    for sku in parsed(session, Sku, _skus(session, session.credential(KEY))):
        purchase = USAGE.get(sku.category.usageType)
        name = _PLACE.sub("", _SPOT.sub("", sku.description))
        if purchase is None or name not in _WANTED:
            session.leave_out("a SKU of no machine that is assembled here")
            continue
        usd = _usd_per_hour(session, sku)
        if usd is not None:
            parts.update({(name, purchase, region): usd for region in sku.serviceRegions})
    for machine in MACHINES:
        instance = find_instance("gcp", machine.name)
        if instance is not None:
            yield from _assembled(session, machine, instance, parts)


def _skus(session: Session, key: str) -> Iterator[dict[str, object]]:
    token = ""
    for _ in range(MAX_PAGES):
        query = f"?pageSize=5000&currencyCode=USD{f'&pageToken={token}' if token else ''}"
        page = document(Page, session.json(URL + query, headers={"x-goog-api-key": key}))
        yield from page.skus
        token = page.nextPageToken
        if not token:
            return
        if not re.fullmatch(r"[\w=+/.-]+", token):
            raise SourceError("The token of its next page is not one.")
    raise SourceError(f"Its pages do not end: {MAX_PAGES} were read.")


def _usd_per_hour(session: Session, sku: Sku) -> float | None:
    """USD per hour of one vCPU, GiB or GPU."""
    expression = sku.pricingInfo[-1].pricingExpression
    if expression.usageUnit not in ("h", "GiBy.h"):
        session.refuse(sku.description, f"its unit is {expression.usageUnit[:20]!r}, not an hour.")
        return None
    if not expression.tieredRates:
        session.refuse(sku.description, "it has no rate.")
        return None
    price = expression.tieredRates[-1].unitPrice
    if price.currencyCode != "USD":
        session.refuse(sku.description, f"its currency is {price.currencyCode[:10]!r}, not USD.")
        return None
    return price.units + price.nanos * 1e-9


def _assembled(
    session: Session, machine: Machine, instance: Instance, parts: Parts
) -> Iterator[Offer]:
    for purchase in USAGE.values():
        for name, kind, region in sorted(parts):
            if name != machine.gpu or kind != purchase:
                continue
            core = parts.get((machine.core, purchase, region))
            ram = parts.get((machine.ram, purchase, region))
            if core is None or ram is None or not instance.vcpus or not instance.host_ram_gib:
                session.leave_out(f"a part of {machine.name} has no price there")
                continue
            gpu = parts[name, purchase, region]
            yield from offer(
                session,
                provider="gcp",
                instance_type=machine.name,
                region=region,
                purchase=purchase,
                usd_per_hour=core * instance.vcpus
                + ram * instance.host_ram_gib
                + gpu * instance.gpu_count,
                observed_at=session.today,
                source="Google Cloud Billing catalogue, SKUs added",
                quality="medium",
                note="vCPUs, memory and GPUs; without local SSD",
            )
