"""RunPod GPU types through GraphQL, without a key, as far as there is something left to rent.

Prices are per GPU and hour, the same everywhere. What is left is asked for by count: of the secure
cloud in each data centre, of the community cloud altogether. `minimumBidPrice` is the lowest bid
that may win, not a price, and is not asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from pydantic import Field

from core.errors import shown
from core.machine.offer import Offer, Purchase
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers.boundary import Raw, document, offer, parsed

URL = "https://api.runpod.io/graphql"
COUNTS = (1, 2, 4, 8)  # GPUs of one pod
GONE = ("", "none", "out of stock")  # of a stock status
_BY_COUNT = {
    "secure": "gpuAvailability(input:{gpuCount:%d,secureCloud:true}) { gpuTypeId stockStatus }",
    "community": "lowestPrice(input:{gpuCount:%d,secureCloud:false}) { stockStatus }",
}


def _of_each_count(cloud: str) -> str:
    return " ".join(f"n{count}: {_BY_COUNT[cloud] % count}" for count in COUNTS)


QUERY = (
    f"query {{ dataCenters {{ id listed {_of_each_count('secure')} }} "
    "gpuTypes { id displayName memoryInGb secureCloud communityCloud securePrice communityPrice "
    "secureSpotPrice communitySpotPrice maxGpuCountSecureCloud maxGpuCountCommunityCloud "
    f"{_of_each_count('community')} }} }}"
)


class Stock(Raw):
    """What is left of one GPU type and count."""

    gpuTypeId: str = ""
    stockStatus: str | None = None

    @property
    def is_left(self) -> bool:
        return (self.stockStatus or "").replace("_", " ").strip().lower() not in GONE


class DataCentre(Raw):
    id: str
    listed: bool = True
    n1: list[Stock] | None = None
    n2: list[Stock] | None = None
    n4: list[Stock] | None = None
    n8: list[Stock] | None = None


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
    n1: Stock | None = None
    n2: Stock | None = None
    n4: Stock | None = None
    n8: Stock | None = None


class Data(Raw):
    centres: list[dict[str, object]] = Field(alias="dataCenters")
    types: list[dict[str, object]] = Field(alias="gpuTypes")


class Answer(Raw):
    data: Data | None = None
    errors: list[object] = Field(default_factory=list)


Places = dict[tuple[str, int], list[tuple[str, str]]]  # GPU type, count -> data centre, stock


def fetch(session: Session) -> Iterable[Offer]:
    """One offer per GPU type, cloud, price kind, count and place where it is left."""
    answer = document(Answer, session.json(URL, post={"query": QUERY}))
    if answer.data is None:
        raise SourceError(f"The query failed: {shown(answer.errors)}.")
    secure: Places = defaultdict(list)
    for centre in parsed(session, DataCentre, answer.data.centres):
        for count in COUNTS if centre.listed else ():
            for stock in getattr(centre, f"n{count}") or ():
                if stock.is_left:
                    secure[stock.gpuTypeId, count].append((centre.id, stock.stockStatus))
    for gpu in parsed(session, GpuType, answer.data.types):
        community: Places = {}
        for count in COUNTS:
            stock = getattr(gpu, f"n{count}")
            if stock is not None and stock.is_left:
                community[gpu.id, count] = [(ANY_REGION, stock.stockStatus)]
        if gpu.secureCloud:
            prices = (gpu.securePrice, gpu.secureSpotPrice)
            yield from _offers(session, gpu, "SECURE", prices, gpu.maxGpuCountSecureCloud, secure)
        if gpu.communityCloud:
            prices = (gpu.communityPrice, gpu.communitySpotPrice)
            most = gpu.maxGpuCountCommunityCloud
            yield from _offers(session, gpu, "COMMUNITY", prices, most, community)


def _offers(
    session: Session,
    gpu: GpuType,
    cloud: str,
    prices: tuple[float | None, float | None],
    most: int | None,
    places: Places,
) -> Iterator[Offer]:
    if not any((gpu.id, count) in places for count in COUNTS):
        session.leave_out("nothing left to rent")
        return
    on_demand, spot = prices
    if spot and spot == on_demand:
        session.leave_out("spot at 100% of on-demand: there is no market")
        spot = None
    kinds: tuple[tuple[Purchase, float | None], ...] = (("on_demand", on_demand), ("spot", spot))
    for count in (n for n in COUNTS if n <= (most or 1)):
        for purchase, usd in kinds:
            if usd is None or (usd == 0 and purchase == "spot"):
                continue
            for region, stock in places.get((gpu.id, count), ()):
                yield from offer(
                    session,
                    provider="runpod",
                    instance_type=f"{count}x_{gpu.displayName.replace(' ', '-')}_{cloud}",
                    region=region,
                    purchase=purchase,
                    usd_per_hour=usd * count,
                    observed_at=session.today,
                    source="RunPod GraphQL: gpuTypes",
                    quality="medium",
                    gpu_name=gpu.displayName,
                    gpu_count=count,
                    gpu_memory_gib=gpu.memoryInGb,
                    note=f"{cloud.lower()} cloud; stock: {shown(stock)}",
                )
