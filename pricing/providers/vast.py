"""Vast.ai marketplace offers, without a key: verified hosts of reliability 0.98 and better.

`dph_total` is USD per hour for all GPUs of the offer with its disk, `gpu_ram` MB of one GPU.
`min_bid` is the lowest bid that may win, not a price. Of all hosts of a country the cheapest
counts, with their number in the note.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import quote

from core.machine.offer import Offer
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers.boundary import Raw, document, offer, parsed

URL = "https://console.vast.ai/api/v0/bundles/"
GPUS = (
    "H100 SXM", "H100 PCIE", "H100 NVL", "H200", "H200 NVL", "B200", "A100 SXM4", "A100 PCIE",
    "L40S", "L40", "A40", "A10", "RTX 6000Ada", "RTX A6000", "RTX A5000", "RTX A4000", "RTX 5090",
    "RTX 4090", "RTX 4080", "RTX 3090", "Tesla T4",
)  # fmt: skip
LIMIT = 3000
LEAST_RELIABILITY = 0.98


class Bundle(Raw):
    gpu_name: str
    num_gpus: int
    gpu_ram: float
    dph_total: float
    min_bid: float | None = None
    geolocation: str | None = None
    reliability2: float
    rentable: bool = True


class Answer(Raw):
    offers: list[dict[str, object]]


def fetch(session: Session) -> Iterable[Offer]:
    """The cheapest host per GPU, count and country; a GPU that fails leaves the others."""
    failed: list[SourceError] = []
    for name in GPUS:
        try:
            yield from _offers(session, name)
        except SourceError as e:
            failed.append(e)
            session.warn(f"{name}: {e}")
    if failed:
        session.part_failed(f"{len(failed)} of {len(GPUS)} queries: {failed[0]}", provider="vast")


def _offers(session: Session, name: str) -> Iterable[Offer]:
    wanted = {
        "gpu_name": {"eq": name},
        "verified": {"eq": True},
        "rentable": {"eq": True},
        "reliability2": {"gte": LEAST_RELIABILITY},
        "type": "on-demand",
        "order": [["dph_total", "asc"]],
        "limit": LIMIT,
    }
    url = f"{URL}?q={quote(json.dumps(wanted, separators=(',', ':')))}"
    found: dict[tuple[int, str], list[Offer]] = defaultdict(list)
    for row in parsed(session, Bundle, document(Answer, session.json(url)).offers):
        if row.min_bid is not None:
            session.leave_out("a bid floor, not a price")
        if not row.rentable or row.reliability2 < LEAST_RELIABILITY:
            session.leave_out("a host that is not rentable or reliable enough")
            continue
        region = (row.geolocation or "").rpartition(",")[2].strip() or ANY_REGION
        for o in offer(
            session,
            provider="vast",
            instance_type=f"{row.num_gpus}x {row.gpu_name}",
            region=region,
            purchase="on_demand",
            usd_per_hour=row.dph_total,
            observed_at=session.today,
            source="Vast.ai bundles",
            quality="medium",
            gpu_name=row.gpu_name,
            gpu_count=row.num_gpus,
            gpu_memory_gib=row.gpu_ram / 1024,
        ):
            found[o.gpu_count, region].append(o)
    for same in found.values():
        # An impossibly low price must not hide the real ones: the median decides.
        ordered = sorted(same, key=lambda o: o.usd_per_hour or 0.0)
        middle = ordered[len(ordered) // 2].usd_per_hour or 0.0
        honest = [o for o in ordered if (o.usd_per_hour or 0.0) > middle / 3]
        for _ in range(len(ordered) - len(honest)):
            session.refuse(f"vast {name}", "it asks less than a third of the median host.")
        if honest:
            yield replace(honest[0], note=f"the cheapest of {len(honest)} verified hosts")
