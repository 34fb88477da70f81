"""DigitalOcean GPU Droplets, with an API token: the sizes that can be created now, by region.

`price_hourly` is of the whole Droplet in US dollars, `vram` the total of its GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from core.machine.offer import Offer
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.providers.boundary import MOST_GPUS, Raw, document, offer, parsed

URL = "https://api.digitalocean.com/v2/sizes?per_page=200"
KEY = "DIGITALOCEAN_TOKEN"
MAX_PAGES = 20


class Amount(Raw):
    amount: float


class Gpu(Raw):
    count: int = Field(ge=1, le=MOST_GPUS)
    vram: Amount
    model: str  # nvidia_h100, amd_mi300x


class Size(Raw):
    slug: str
    price_hourly: float
    regions: list[str]
    gpu_info: Gpu | None = None


class Pages(Raw):
    next: str = ""


class Links(Raw):
    pages: Pages = Field(default_factory=Pages)


class Answer(Raw):
    sizes: list[object]
    links: Links = Field(default_factory=Links)


def fetch(session: Session) -> Iterable[Offer]:
    """One offer per GPU size and region."""
    bearer = {"authorization": f"Bearer {session.credential(KEY)}"}
    url = URL
    for _ in range(MAX_PAGES):
        answer = document(Answer, session.json(url, headers=bearer))
        for size in parsed(session, Size, answer.sizes):
            yield from _offers(session, size)
        if not answer.links.pages.next:
            return
        url = session.follow(answer.links.pages.next, of=URL)
    raise SourceError(f"Its pages do not end after {MAX_PAGES}.")


def _offers(session: Session, size: Size) -> Iterable[Offer]:
    gpu = size.gpu_info
    if gpu is None:
        session.leave_out("no GPU")
        return
    if not size.regions:
        session.leave_out("nothing left to rent")
    for region in size.regions:
        yield from offer(
            session,
            provider="digitalocean",
            instance_type=size.slug,
            region=region,
            purchase="on_demand",
            usd_per_hour=size.price_hourly,
            observed_at=session.today,
            source="DigitalOcean API: sizes",
            quality="high",
            gpu_name=gpu.model.replace("_", " "),
            gpu_count=gpu.count,
            gpu_memory_gib=gpu.vram.amount / gpu.count,
        )
