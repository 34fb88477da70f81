"""Verda (formerly DataCrunch) instance types, without a key.

Prices are texts, of the whole instance and hour, in the currency that the row names; `gpu_memory`
is the total of all GPUs. A currency other than the dollar is converted at the ECB's rate.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from core.errors import shown
from core.machine.offer import Offer, Purchase
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers import exchange_rates
from pricing.providers.boundary import MOST_GPUS, Raw, offer, parsed

URL = "https://api.verda.com/v1/instance-types"


class Gpu(Raw):
    description: str
    number_of_gpus: int = Field(ge=0, le=MOST_GPUS)


class Memory(Raw):
    size_in_gigabytes: float


class InstanceType(Raw):
    instance_type: str
    price_per_hour: float
    spot_price: float | None = None
    currency: str
    gpu: Gpu
    gpu_memory: Memory
    model: str = ""


def fetch(session: Session) -> Iterable[Offer]:
    """An on-demand and a spot offer per type."""
    answer = session.json(URL)
    if not isinstance(answer, list):
        raise SourceError(f"Its shape has changed: a list was expected, not {shown(answer)}.")
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
            yield from offer(
                session,
                provider="verda",
                instance_type=row.instance_type,
                region=ANY_REGION,
                purchase=purchase,
                usd_per_hour=price,
                observed_at=session.today,
                source="Verda API: instance-types",
                quality="high",
                gpu_name=row.gpu.description,
                gpu_count=count,
                gpu_memory_gib=row.gpu_memory.size_in_gigabytes / count,
                note=note,
            )
