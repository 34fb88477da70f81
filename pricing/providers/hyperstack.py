"""Hyperstack flavours that are in stock, with an API key, at the prices of its price book.

The price book is per GPU and hour and by the name of the GPU, which ends in "-spot" for spot; host
CPU and memory of a GPU flavour cost nothing more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.machine.offer import Offer
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.providers.boundary import Raw, document, offer, parsed

BASE = "https://infrahub-api.nexgencloud.com/v1"
KEY = "HYPERSTACK_API_KEY"
_SPOT = "-spot"
_MEMORY = re.compile(r"-(\d+)G\b")


class Flavor(Raw):
    name: str
    region_name: str
    gpu: str | None = None
    gpu_count: int
    stock_available: bool


class Group(Raw):
    flavors: list[object]


class Answer(Raw):
    data: list[object]


class Price(Raw):
    name: str
    value: float


def fetch(session: Session) -> Iterable[Offer]:
    """One offer per flavour that is in stock."""
    key = {"api_key": session.credential(KEY)}
    book = session.json(f"{BASE}/pricebook", headers=key)
    if not isinstance(book, list):
        raise SourceError("Its shape has changed: a list was expected.")  # it may repeat the key
    usd_per_gpu_hour = {p.name: p.value for p in parsed(session, Price, book)}
    answer = document(Answer, session.json(f"{BASE}/core/flavors", headers=key))
    groups = parsed(session, Group, answer.data)
    for flavor in parsed(session, Flavor, (f for g in groups for f in g.flavors)):
        gpu = flavor.gpu or ""
        if not gpu or not flavor.gpu_count:
            session.leave_out("no GPU")
        elif not flavor.stock_available:
            session.leave_out("nothing left to rent")
        elif gpu not in usd_per_gpu_hour:
            session.leave_out("a GPU without a price")
        else:
            yield from offer(
                session,
                provider="hyperstack",
                instance_type=flavor.name,
                region=flavor.region_name,
                purchase="spot" if gpu.endswith(_SPOT) else "on_demand",
                usd_per_hour=usd_per_gpu_hour[gpu] * flavor.gpu_count,
                observed_at=session.today,
                source="Hyperstack API: pricebook, core/flavors",
                quality="high",
                gpu_name=_MEMORY.sub(r" \1GB", gpu.removesuffix(_SPOT)),
                gpu_count=flavor.gpu_count,
            )
