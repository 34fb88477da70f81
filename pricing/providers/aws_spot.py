"""AWS spot prices (spot.js) with the interruptions of the Spot Advisor, without a key.

spot.js is `callback({...})`: some regions have old names, and the price of a machine that is not
sold is 'N/A*'. The advisor's band is the share of instances that were interrupted within a month,
not a hazard, and its savings may be negative; it goes into the note. If the advisor fails, the
prices are used without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pydantic import Field

from core.errors import shown
from core.machine.offer import Offer
from pricing.fetch import decoding
from pricing.fetch.network import SourceError
from pricing.fetch.session import JSON, Session
from pricing.providers.boundary import Raw, document, known_machine, offer, parsed

PRICES = "https://spot-price.s3.amazonaws.com/spot.js"
ADVISOR = "https://spot-bid-advisor.s3.amazonaws.com/spot-advisor-data.json"
OLD_NAMES = {
    "us-east": "us-east-1", "us-west": "us-west-1", "eu-ireland": "eu-west-1",
    "apac-sin": "ap-southeast-1", "apac-syd": "ap-southeast-2", "apac-tokyo": "ap-northeast-1",
}  # fmt: skip
_LABEL = re.compile(r"[<>]?\d{1,2}(?:-\d{1,2})?%")
_CALLBACK = re.compile(r"\s*callback\((.*)\)\s*;?\s*", re.DOTALL)


class Column(Raw):
    name: str
    prices: Mapping[str, str]


class Size(Raw):
    size: str
    columns: list[Column] = Field(alias="valueColumns")


class Family(Raw):
    sizes: list[Size]


class Region(Raw):
    region: str
    families: list[Family] = Field(alias="instanceTypes")


class Config(Raw):
    currencies: list[str] = Field(default_factory=list)
    rate: str
    regions: list[Region]


class Prices(Raw):
    config: Config


class Advice(Raw):
    """Savings in percent and the index of the band of interruptions."""

    s: int
    r: int = Field(ge=0, le=4)


class Band(Raw):
    index: int
    label: str


class Advisor(Raw):
    ranges: list[Band]
    spot_advisor: Mapping[str, Mapping[str, Mapping[str, Advice]]]


def fetch(session: Session) -> Iterable[Offer]:
    """Spot offers of known machines."""
    data, day = session.body(PRICES, accept=JSON)
    wrapped = _CALLBACK.fullmatch(decoding.text(data))
    if wrapped is None:
        raise SourceError("The spot prices are not wrapped in callback(...).")
    config = document(Prices, decoding.strict_json(wrapped[1])).config
    if config.rate != "perhr":
        raise SourceError(f"The spot prices are {shown(config.rate)}, not per hour.")
    notes = _notes(session)
    for row in parsed(session, _Price, _listed(session, config)):
        yield from offer(
            session,
            provider="aws",
            instance_type=row.size,
            region=row.region,
            purchase="spot",
            usd_per_hour=row.usd,
            observed_at=day,
            source="AWS spot prices (spot.js)",
            quality="high",
            note=notes.get((row.region, row.size), ""),
        )


class _Price(Raw):
    usd: float
    size: str
    region: str


def _listed(session: Session, config: Config) -> Iterator[dict[str, str]]:
    """Prices of known machines, where they are sold."""
    for region, size, text in _linux(config):
        if known_machine("aws", size) is None:
            session.leave_out("no machine that we know")
        elif text.startswith("N/A"):
            session.leave_out("not sold as spot there")
        else:
            yield {"usd": text, "size": size, "region": region}


def _linux(config: Config) -> Iterator[tuple[str, str, str]]:
    """Region, instance type and printed price."""
    for region in config.regions:
        name = OLD_NAMES.get(region.region, region.region)
        for size in (s for f in region.families for s in f.sizes):
            for column in size.columns:
                if column.name == "linux" and "USD" in column.prices:
                    yield name, size.size, column.prices["USD"]


def _notes(session: Session) -> dict[tuple[str, str], str]:
    """Notes from the advisor, by instance type and region."""
    try:
        advisor = document(Advisor, session.json(ADVISOR))
    except SourceError as e:
        session.warn(f"Spot Advisor: {e}")
        return {}
    labels = {b.index: b.label for b in advisor.ranges if _LABEL.fullmatch(b.label)}
    return {
        (region, size): f"Spot Advisor: {labels.get(a.r, '?')} of instances interrupted a month, "
        f"{a.s}% under on-demand"
        for region, systems in advisor.spot_advisor.items()
        for size, a in systems.get("Linux", {}).items()
    }
