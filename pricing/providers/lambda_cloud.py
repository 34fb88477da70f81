"""Lambda instance types with live capacity, with an API key.

`price_cents_per_hour` is of the whole instance, in cents. A type without capacity keeps its list
price; with a note that there is none now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field

from core.machine.offer import Offer
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers.boundary import Raw, document, offer, parsed

URL = "https://cloud.lambda.ai/api/v1/instance-types"
KEY = "LAMBDA_API_KEY"


class Specs(Raw):
    gpus: int


class InstanceType(Raw):
    name: str
    gpu_description: str = ""
    description: str = ""
    price_cents_per_hour: float
    specs: Specs


class Place(Raw):
    name: str


class Listed(Raw):
    instance_type: InstanceType
    regions: list[Place] = Field(alias="regions_with_capacity_available")


class Answer(Raw):
    data: Mapping[str, Mapping[str, object]]


def fetch(session: Session) -> Iterable[Offer]:
    """One offer per type and region with capacity, or one without a region."""
    bearer = {"authorization": f"Bearer {session.credential(KEY)}"}
    answer = document(Answer, session.json(URL, headers=bearer))
    for row in parsed(session, Listed, answer.data.values()):
        machine = row.instance_type
        regions = [place.name for place in row.regions]
        for region in regions or [ANY_REGION]:
            yield from offer(
                session,
                provider="lambda",
                instance_type=machine.name,
                region=region,
                purchase="on_demand",
                usd_per_hour=machine.price_cents_per_hour / 100,
                observed_at=session.today,
                source="Lambda API: instance-types",
                quality="high",
                gpu_name=machine.gpu_description or machine.description,
                gpu_count=machine.specs.gpus,
                note="" if regions else "no capacity anywhere now",
            )
