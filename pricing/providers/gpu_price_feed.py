"""The gpu-price-feed collection: list prices of seven sellers, collected daily, without a key.

It reads the sellers' own APIs and pages, drops a seller that it cannot read and never repeats an
old number; such a seller is a failed part here. Prices are of the whole instance, in dollars as the
collection converted them. Its Vast.ai rows are single hosts; Vast.ai is read directly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime

from core.machine.offer import Offer, Purchase
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers.boundary import Raw, document, offer, parsed

URL = "https://raw.githubusercontent.com/toolshedlabs-hash/gpu-price-feed/main/data/prices.json"
# Their name of a seller -> ours, and how far its rows are trusted: RunPod's are the cheapest of its
# hosts, Scaleway's are converted from euros.
SELLERS = {
    "datacrunch": ("verda", "high"),
    "lambdalabs": ("lambda", "high"),
    "digitalocean": ("digitalocean", "high"),
    "vultr": ("vultr", "high"),
    "akamai": ("akamai", "high"),
    "runpod": ("runpod", "medium"),
    "scaleway": ("scaleway", "medium"),
}
PURCHASES: dict[str, Purchase] = {
    "on-demand": "on_demand", "spot": "spot", "reserved-12mo": "reserved_1y",
}  # fmt: skip
# Parts that are sold in several forms; without the form the card cannot be told.
FORMS = ("A100", "H100", "H200")
_TYPE = re.compile(r"(?:instance type|plan) ([^\s,;]+)")
_CLOUD = re.compile(r"(secure|community) cloud")
_MARKS = re.compile("[™®]")


class Row(Raw):
    provider: str
    gpu_model_raw: str
    gpu_model_alt: str | None = None
    gpu_family: str
    gpu_form: str | None = None
    gpu_partition: str | None = None
    gpu_count: float
    vram_gb: float | None = None
    currency: str
    price_total_hr: float
    price_total_hr_usd: float | None = None
    pricing_type: str
    region: str | None = None
    notes: str = ""

    @property
    def gpu(self) -> str:
        """The name of the GPU without the marks of its maker."""
        return _MARKS.sub("", self.gpu_model_raw)

    @property
    def machine(self) -> str:
        """The seller's name of the machine; where the collection has none, its GPUs."""
        if named := _TYPE.match(self.notes):
            return named[1]
        if cloud := _CLOUD.match(self.notes):  # as RunPod's own list is read
            name = (self.gpu_model_alt or self.gpu_model_raw).replace(" ", "-")
            return f"{self.gpu_count:g}x_{name}_{cloud[1].upper()}"
        memory = "" if self.vram_gb is None else f" {self.vram_gb:g}GB"
        return f"{self.gpu_count:g}x {self.gpu}{memory}"


class Seller(Raw):
    status: str
    error: str = ""


class Answer(Raw):
    collected_at: datetime
    providers: dict[str, Seller]
    offers: list[dict[str, object]]


def fetch(session: Session) -> Iterable[Offer]:
    """Offers of every seller; one that the collection could not read is a failed part."""
    answer = document(Answer, session.json(URL))
    for theirs, seller in answer.providers.items():
        if seller.status == "error" and theirs in SELLERS:
            ours = SELLERS[theirs][0]
            session.part_failed(f"{ours}: the collection could not read it.", provider=ours)
    rows = list(parsed(session, Row, answer.offers))
    on_demand = {
        (r.provider, r.machine, r.price_total_hr) for r in rows if r.pricing_type != "spot"
    }
    day = answer.collected_at.date()
    for row in rows:
        if row.provider not in SELLERS:
            session.leave_out("a marketplace, which is read directly")
        elif row.pricing_type not in PURCHASES or row.currency not in ("USD", "EUR"):
            session.leave_out("no price of a known kind and currency")
        elif row.price_total_hr_usd is None:
            session.leave_out("no exchange rate on that day")
        elif not row.gpu_count.is_integer() or row.gpu_partition:
            session.leave_out("a fraction of a GPU")
        elif row.gpu_form is None and row.gpu_family in FORMS:
            session.leave_out("the form of the GPU is not stated")
        elif row.pricing_type == "spot" and (
            (row.provider, row.machine, row.price_total_hr) in on_demand
        ):
            session.leave_out("spot at 100% of on-demand: there is no market")
        else:
            yield from _offers(session, row, row.price_total_hr_usd, day)


def _offers(session: Session, row: Row, usd_per_hour: float, day: date) -> Iterable[Offer]:
    seller, quality = SELLERS[row.provider]
    note = "" if row.currency == "USD" else f"{row.price_total_hr:g} EUR/h at the ECB's rate"
    for region in (row.region or ANY_REGION).split(","):
        yield from offer(
            session,
            provider=seller,
            instance_type=row.machine,
            region=region,
            purchase=PURCHASES[row.pricing_type],
            usd_per_hour=usd_per_hour,
            observed_at=min(day, session.today),
            source="gpu-price-feed: data/prices.json",
            quality=quality,
            gpu_name=row.gpu,
            gpu_count=int(row.gpu_count),
            gpu_memory_gib=row.vram_gb,
            form=row.gpu_form or "",
            note=note,
        )
