"""The gpuhunt catalogue: one zip with one CSV per provider, published hourly, without a
key.

Prices are USD per hour of the whole instance, `gpu_memory` is GB of one GPU; only that column
distinguishes an A100 of 40 GB from one of 80 GB, and only the instance's name a PCIe card from a
board. A TPU row is a whole slice with a GPU count of 1. A flag hides a row from older clients of
the catalogue: it names the feature that a client needs, and the price is an ordinary one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from datetime import date

from core.errors import shown
from core.machine.offer import Offer, Purchase
from pricing.fetch import decoding
from pricing.fetch.network import SourceError
from pricing.fetch.session import ZIP, Session
from pricing.providers import tpu_slices
from pricing.providers.boundary import Raw, cheapest_zone, offer, parsed

BASE = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
# Their name of a provider -> ours.
PROVIDERS = {
    "aws": "aws", "azure": "azure", "gcp": "gcp", "oci": "oci", "lambdalabs": "lambda",
    "nebius": "nebius", "runpod": "runpod", "verda": "verda", "cloudrift": "cloudrift",
}  # fmt: skip
CSV_BYTES = 64_000_000
COLUMNS = ("instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
# What a flag says of the offer; a row with another flag is left out.
FLAGS = {
    "gcp-a4": "",
    "gcp-g4": "",
    "lambda-arm": "",
    "gcp-dws-calendar-mode": "Dynamic Workload Scheduler, calendar mode: booked for fixed dates",
    "oci-spot": "preemptible capacity, half of on-demand by Oracle's rule",
    "runpod-cluster": "a machine of an Instant Cluster of 2 to 8",
}
_VERSION = re.compile(r"[0-9A-Za-z._-]{1,40}")
_ZONE = re.compile(r"-[a-z]$")
_FORM = re.compile(r"sxm|pcie|nvl(?!ink)", re.IGNORECASE)


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
    source = f"gpuhunt catalogue {version}: {theirs}"
    slices = []
    for row in parsed(session, Row, map(_blanks, rows)):
        if unknown := sorted(set(row.flags.split()) - FLAGS.keys()):
            session.leave_out(f"it needs a feature that is not known: {shown(unknown[0])}")
        elif tpu_slices.is_slice(row.gpu_name):
            slices.append((row.gpu_name, (row.location, row.spot), row))
        else:
            yield from _offer(session, row, ours, day, source)
    for one_chip, chips, row in tpu_slices.smallest(slices):
        chip = row.model_copy(
            update={"instance_name": one_chip, "price": row.price / chips, "gpu_memory": None}
        )
        yield from _offer(session, chip, ours, day, source)


def _blanks(row: dict[str, str]) -> dict[str, str]:
    """A row without its empty cells; an empty GPU count is 0."""
    return {k: v for k, v in row.items() if v.strip()} | (
        {} if row["gpu_count"].strip() else {"gpu_count": "0"}
    )


def _offer(session: Session, row: Row, provider: str, day: date, source: str) -> Iterator[Offer]:
    flags = row.flags.split()
    purchase: Purchase = "spot" if row.spot else "on_demand"
    if "gcp-dws-calendar-mode" in flags:
        purchase = "capacity_block"
    form = _FORM.search(row.instance_name)
    return offer(
        session,
        provider=provider,
        # The pod of the same size in the same place has the same name and another price.
        instance_type=row.instance_name + (" cluster" if "runpod-cluster" in flags else ""),
        region=_ZONE.sub("", row.location) if provider == "gcp" else row.location,
        purchase=purchase,
        usd_per_hour=row.price,
        observed_at=day,
        source=source,
        quality="medium",
        gpu_name=row.gpu_name,
        gpu_count=row.gpu_count,
        gpu_memory_gib=row.gpu_memory,
        form=form[0] if form else "",
        note="; ".join(filter(None, map(FLAGS.get, flags))),
    )
