"""The gpuhunt catalogue: one zip with one CSV per provider, published daily, without a key.

Prices are USD per hour of the whole instance, `gpu_memory` is GB of one GPU; only that column
distinguishes an A100 of 40 GB from one of 80 GB. A row with flags is a special offer of that
provider.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from datetime import date

from core.errors import shown
from core.machine.offer import Offer
from pricing.fetch import decoding
from pricing.fetch.network import SourceError
from pricing.fetch.session import ZIP, Session
from pricing.providers.boundary import Raw, cheapest_zone, offer, parsed

BASE = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
# Their name of a provider -> ours.
PROVIDERS = {
    "aws": "aws", "azure": "azure", "gcp": "gcp", "oci": "oci", "lambdalabs": "lambda",
    "nebius": "nebius", "runpod": "runpod", "verda": "verda", "cloudrift": "cloudrift",
}  # fmt: skip
CSV_BYTES = 64_000_000
COLUMNS = ("instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
_VERSION = re.compile(r"[0-9A-Za-z._-]{1,40}")
_ZONE = re.compile(r"-[a-z]$")


class Row(Raw):
    instance_name: str
    location: str
    price: float
    gpu_count: int
    gpu_name: str = ""
    gpu_memory: float | None = None
    spot: bool
    flags: str = ""


def fetch(session: Session) -> Iterable[Offer]:
    """Offers of every provider; a provider that fails is a failed part, whose old rows stay."""
    for theirs, ours in PROVIDERS.items():
        try:
            yield from cheapest_zone(_offers(session, theirs, ours))
        except SourceError as e:
            session.part_failed(f"{ours}: {e}", provider=ours)


def _offers(session: Session, theirs: str, ours: str) -> Iterator[Offer]:
    version = session.text(f"{BASE}/{theirs}/version")[0].strip()
    if not _VERSION.fullmatch(version):
        raise SourceError(f"The version of the catalogue is {shown(version)}.")
    data, day = session.body(f"{BASE}/{theirs}/{version}/catalog.zip", accept=ZIP)
    table = decoding.text(decoding.zip_member(data, f"{theirs}.csv", CSV_BYTES))
    rows = decoding.csv_rows(io.StringIO(table, newline=""), COLUMNS)
    for row in parsed(session, Row, map(_blanks, rows)):
        if row.flags.strip():
            session.leave_out(f"a special offer: {shown(row.flags.strip())}")
            continue
        yield from _offer(session, row, ours, day, f"gpuhunt catalogue {version}: {theirs}")


def _blanks(row: dict[str, str]) -> dict[str, str]:
    """A row without its empty cells; an empty GPU count is 0."""
    return {k: v for k, v in row.items() if v.strip()} | (
        {} if row["gpu_count"].strip() else {"gpu_count": "0"}
    )


def _offer(session: Session, row: Row, provider: str, day: date, source: str) -> Iterator[Offer]:
    return offer(
        session,
        provider=provider,
        instance_type=row.instance_name,
        region=_ZONE.sub("", row.location) if provider == "gcp" else row.location,
        purchase="spot" if row.spot else "on_demand",
        usd_per_hour=row.price,
        observed_at=day,
        source=source,
        quality="medium",
        gpu_name=row.gpu_name,
        gpu_count=row.gpu_count,
        gpu_memory_gib=row.gpu_memory,
    )
