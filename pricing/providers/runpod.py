"""RunPod GPU types through GraphQL, without a key.

Prices are per GPU and hour. They stay listed when nothing is left to rent (`stockStatus` null), and
`minimumBidPrice` is the lowest bid that may win, not a price.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import Field

from core.errors import shown
from core.machine.offer import Offer, Purchase
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers.boundary import Raw, document, offer, parsed

URL = "https://api.runpod.io/graphql"
QUERY = (
    "query { gpuTypes { id displayName memoryInGb secureCloud communityCloud securePrice "
    "communityPrice secureSpotPrice communitySpotPrice maxGpuCountSecureCloud "
    "maxGpuCountCommunityCloud lowestPrice(input:{gpuCount:1}) "
    "{ minimumBidPrice uninterruptablePrice stockStatus } } }"
)
MOST_GPUS = 8  # of one pod


class Lowest(Raw):
    minimumBidPrice: float | None = None
    stockStatus: str | None = None


class GpuType(Raw):
    id: str
    displayName: str
    memoryInGb: float
    secureCloud: bool
    communityCloud: bool
    securePrice: float | None = None
    communityPrice: float | None = None
    secureSpotPrice: float | None = None
    communitySpotPrice: float | None = None
    maxGpuCountSecureCloud: int | None = None
    maxGpuCountCommunityCloud: int | None = None
    lowestPrice: Lowest | None = None


class GpuTypes(Raw):
    types: list[dict[str, object]] = Field(alias="gpuTypes")


class Answer(Raw):
    data: GpuTypes | None = None
    errors: list[object] = Field(default_factory=list)


def fetch(session: Session) -> Iterable[Offer]:
    """One offer per GPU type, cloud, price kind and power of two of GPUs."""
    answer = document(Answer, session.json(URL, post={"query": QUERY}))
    if answer.data is None:
        raise SourceError(f"The query failed: {shown(answer.errors)}.")
    for gpu in parsed(session, GpuType, answer.data.types):
        if gpu.lowestPrice is None or gpu.lowestPrice.stockStatus is None:
            session.leave_out("nothing left to rent")
            continue
        if gpu.lowestPrice.minimumBidPrice is not None:
            session.leave_out("a bid floor, not a price")
        if gpu.secureCloud:
            prices = (gpu.securePrice, gpu.secureSpotPrice)
            yield from _offers(session, gpu, "SECURE", prices, gpu.maxGpuCountSecureCloud)
        if gpu.communityCloud:
            prices = (gpu.communityPrice, gpu.communitySpotPrice)
            yield from _offers(session, gpu, "COMMUNITY", prices, gpu.maxGpuCountCommunityCloud)


def _offers(
    session: Session,
    gpu: GpuType,
    cloud: str,
    prices: tuple[float | None, float | None],
    most: int | None,
) -> Iterator[Offer]:
    kinds: tuple[Purchase, Purchase] = ("on_demand", "spot")
    count = 1
    while count <= min(most or 1, MOST_GPUS):
        for purchase, usd in zip(kinds, prices, strict=True):
            if usd is None or (usd == 0 and purchase == "spot"):
                session.leave_out(f"no {purchase} price")
                continue
            yield from offer(
                session,
                provider="runpod",
                instance_type=f"{count}x_{gpu.displayName.replace(' ', '-')}_{cloud}",
                region=ANY_REGION,
                purchase=purchase,
                usd_per_hour=usd * count,
                observed_at=session.today,
                source="RunPod GraphQL: gpuTypes",
                quality="medium",
                gpu_name=gpu.displayName,
                gpu_count=count,
                gpu_memory_gib=gpu.memoryInGb,
                note=f"{cloud.lower()} cloud",
            )
        count *= 2
