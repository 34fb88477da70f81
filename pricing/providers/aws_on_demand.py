"""AWS on-demand and reserved prices from the bulk price list of each region, without a key.

The CSV of a region has hundreds of megabytes: it is read line by line, and only lines of known
machines are kept. The file also has capacity blocks and other kinds of reservations, at price 0 or
per term; reserved prices here are Standard, No Upfront, which are per hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from core.machine.offer import Offer, Purchase
from hardware.instances import instances
from pricing.fetch import decoding
from pricing.fetch.session import Session
from pricing.providers.boundary import Raw, each_region, offer, only_usd, parsed

BASE = "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current"
REGIONS_VARIABLE = "RUNCAST_AWS_REGIONS"  # comma-separated, instead of these
REGIONS = ("us-east-1", "us-east-2", "us-west-2", "eu-north-1", "eu-central-1", "ap-northeast-1")
HEADER = '"SKU"'
COLUMNS = (
    "SKU", "TermType", "Unit", "PricePerUnit", "Currency", "LeaseContractLength",
    "PurchaseOption", "OfferingClass", "Instance Type", "Tenancy", "Operating System",
    "Pre Installed S/W", "CapacityStatus",
)  # fmt: skip
_ACCELERATED = re.compile(r'"((?:p|g|trn|inf|dl)\d[\w-]*\.[\w-]+)"')
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
TERMS: dict[str, Purchase] = {"1yr": "reserved_1y", "3yr": "reserved_3y"}


class Row(Raw):
    TermType: str
    Unit: str
    PricePerUnit: float
    Currency: str
    LeaseContractLength: str
    PurchaseOption: str
    OfferingClass: str
    InstanceType: str


def fetch(session: Session) -> Iterable[Offer]:
    """Offers of every region; a region that fails is a failed part, whose old rows stay."""
    return each_region(
        session,
        _offers,
        provider="aws",
        regions=REGIONS,
        variable=REGIONS_VARIABLE,
        shape=_REGION,
    )


def _offers(session: Session, region: str) -> Iterator[Offer]:
    types = {i.instance_type for i in instances() if i.provider == "aws"}

    def keep(line: str) -> bool:
        if '"Linux"' not in line or '"Shared"' not in line:
            return line.startswith(HEADER)
        return not types.isdisjoint(_ACCELERATED.findall(line))

    lines = session.lines(f"{BASE}/{region}/index.csv", keep)
    rows = (_named(r) for r in decoding.csv_rows(lines, COLUMNS) if _is_plain(r))
    for row in parsed(session, Row, rows):
        purchase = _purchase(row)
        what = f"aws {row.InstanceType} {region} {row.TermType}"
        if purchase is None:
            session.leave_out("a reservation that is not Standard, No Upfront")
        elif row.Unit not in ("Hrs", "Hours"):
            session.refuse(what, f"its unit is {row.Unit[:20]!r}, not an hour.")
        elif only_usd(session, what, row.Currency):
            yield from offer(
                session,
                provider="aws",
                instance_type=row.InstanceType,
                region=region,
                purchase=purchase,
                usd_per_hour=row.PricePerUnit,
                observed_at=session.today,
                source=f"AWS price list of EC2, {region}",
                quality="high",
            )


def _is_plain(row: dict[str, str]) -> bool:
    """Whether a row is Linux without other software, on shared hardware, for used capacity."""
    return (
        row["Operating System"] == "Linux"
        and row["Tenancy"] == "Shared"
        and row["CapacityStatus"] == "Used"
        and row.get("MarketOption", "") in ("", "OnDemand")
        and row["Pre Installed S/W"] in ("", "NA")
    )


def _named(row: dict[str, str]) -> dict[str, str]:
    return row | {"InstanceType": row["Instance Type"]}


def _purchase(row: Row) -> Purchase | None:
    if row.TermType == "OnDemand":
        return "on_demand"
    standard = row.OfferingClass == "standard" and row.PurchaseOption == "No Upfront"
    return TERMS.get(row.LeaseContractLength) if standard else None
