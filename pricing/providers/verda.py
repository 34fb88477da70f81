"""Verda (formerly DataCrunch) instance types; with OAuth client credentials, where they are left.

The list of types needs no key, at this host and at api.datacrunch.io, its former name. Where a
type can be rented now is told to clients only: the locations of on-demand and of spot.

Prices are texts, of the whole instance and hour, in the currency that the row names; `gpu_memory`
is the total of all GPUs. A currency other than the dollar is converted at the ECB's rate.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pydantic import Field

from core.machine.offer import Offer, Purchase
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers import exchange_rates
from pricing.providers.boundary import MOST_GPUS, Raw, document, offer, parsed

BASE = "https://api.verda.com/v1"
CLIENT_ID, CLIENT_SECRET = "VERDA_CLIENT_ID", "VERDA_CLIENT_SECRET"
NOWHERE = "no capacity anywhere now"


class Gpu(Raw):
    description: str
    number_of_gpus: int = Field(ge=0, le=MOST_GPUS)


class Memory(Raw):
    size_in_gigabytes: float


class InstanceType(Raw):
    instance_type: str
    price_per_hour: float
    spot_price: float | None = None
    currency: str = Field(pattern="^[A-Za-z]{3}$")
    gpu: Gpu
    gpu_memory: Memory
    model: str = ""


class Token(Raw):
    access_token: str = Field(pattern=r"^[!-~]+$")


class Location(Raw):
    location_code: str
    availabilities: list[str]


Left = dict[tuple[str, Purchase], list[str]]  # type and purchase -> locations


def fetch(session: Session) -> Iterable[Offer]:
    """An on-demand and a spot offer per type; with credentials, per location where it is left."""
    left: Left | None = None
    if any(session.environ.get(name, "").strip() for name in (CLIENT_ID, CLIENT_SECRET)):
        left = _left(session)
    answer = session.json(f"{BASE}/instance-types")
    if not isinstance(answer, list):
        raise SourceError("Its shape has changed: a list was expected.")  # it may repeat a key
    rates: exchange_rates.Rates | None = None
    for row in parsed(session, InstanceType, answer):
        count = row.gpu.number_of_gpus
        if count < 1:
            session.leave_out("no GPU")
            continue
        note = ""
        usd, spot_usd = row.price_per_hour, row.spot_price
        if (currency := row.currency.upper()) != "USD":
            rates = rates or exchange_rates.rates(session)
            note = f"{usd:g} {currency}/h at the ECB's rate of {rates.day}"
            usd = rates.usd(usd, currency)
            spot_usd = None if spot_usd is None else rates.usd(spot_usd, currency)
        prices: list[tuple[Purchase, float]] = [("on_demand", usd)]
        if spot_usd is not None:
            prices.append(("spot", spot_usd))
        for purchase, price in prices:
            regions = [] if left is None else left.get((row.instance_type, purchase), [])
            gone = NOWHERE if left is not None and not regions else ""
            for region in regions or [ANY_REGION]:
                yield from offer(
                    session,
                    provider="verda",
                    instance_type=row.instance_type,
                    region=region,
                    purchase=purchase,
                    usd_per_hour=price,
                    observed_at=session.today,
                    source="Verda API: instance-types",
                    quality="high",
                    gpu_name=row.gpu.description,
                    gpu_count=count,
                    gpu_memory_gib=row.gpu_memory.size_in_gigabytes / count,
                    note="; ".join(filter(None, (note, gone))),
                )


def _left(session: Session) -> Left:
    """The locations in which each type can be rented now."""
    credentials = {
        "grant_type": "client_credentials",
        "client_id": session.credential(CLIENT_ID),
        "client_secret": session.credential(CLIENT_SECRET),
    }
    token = document(Token, session.json(f"{BASE}/oauth2/token", post=credentials))
    bearer = {"authorization": f"Bearer {token.access_token}"}
    left: Left = defaultdict(list)
    kinds: tuple[tuple[Purchase, str], ...] = (("on_demand", "false"), ("spot", "true"))
    for purchase, is_spot in kinds:
        url = f"{BASE}/instance-availability?is_spot={is_spot}"
        answer = session.json(url, headers=bearer)
        if not isinstance(answer, list):
            raise SourceError("Its shape has changed: a list was expected.")  # it may repeat a key
        for place in parsed(session, Location, answer):
            for instance_type in place.availabilities:
                left[instance_type, purchase].append(place.location_code)
    return left
