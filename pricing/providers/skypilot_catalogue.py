"""The SkyPilot catalogue: one CSV per cloud, without a key, with a mirror for busy days.

Traps of these files: GCP prints the host and its accelerators as separate rows, which have to be
added; an AWS spot price equal to on-demand or to a tenth of it means that there is no market; the
spot price of Vast.ai is a bid floor; the memory column has a different unit per cloud and is not
read. Mithril (bid floors) and Seeweb (no currency stated) are not taken from here.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from datetime import date

from core.machine.offer import Offer, Purchase
from hardware.instances import instances
from pricing.fetch import decoding
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.providers.boundary import Raw, cheapest_zone, offer, parsed

FIRST = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
MIRROR = "https://skypilot-catalog.s3.us-east-1.amazonaws.com/catalogs/v8"
CLOUDS = (
    "aws", "gcp", "azure", "lambda", "runpod", "vast", "verda", "nebius", "oci", "shadeform",
    "hyperstack", "primeintellect", "spheron", "yotta", "lium", "cudo", "jarvislabs", "hyperbolic",
)  # fmt: skip
COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region")
BID_FLOORS = ("vast",)
# Names of the accelerator rows of GCP machines.
GCP_ACCELERATORS = {
    "a2-highgpu": "A100", "a2-megagpu": "A100", "a2-ultragpu": "A100-80GB", "a3-highgpu": "H100",
    "a3-megagpu": "H100-MEGA", "a3-ultragpu": "H200", "a4-highgpu": "B200",
}  # fmt: skip


class Row(Raw):
    InstanceType: str = ""
    AcceleratorName: str = ""
    AcceleratorCount: float = 0.0
    Price: float | None = None
    SpotPrice: float | None = None
    Region: str
    AvailabilityZone: str = ""


def fetch(session: Session) -> Iterable[Offer]:
    """Offers of every cloud; a cloud that fails is a failed part, whose old rows stay."""
    for cloud in CLOUDS:
        try:
            text, day = _table(session, cloud)
            rows = parsed(session, Row, _cells(text))
            made = _gcp(session, rows, day) if cloud == "gcp" else _plain(session, cloud, rows, day)
            yield from cheapest_zone(made)
        except SourceError as e:
            session.part_failed(f"{cloud}: {e}", provider=cloud)


def _table(session: Session, cloud: str) -> tuple[str, date]:
    try:
        return session.text(f"{FIRST}/{cloud}/vms.csv")
    except SourceError as first:
        try:
            return session.text(f"{MIRROR}/{cloud}/vms.csv")
        except SourceError as mirror:
            raise SourceError(f"{first} The mirror: {mirror}") from None


def _cells(text: str) -> Iterator[dict[str, str]]:
    for row in decoding.csv_rows(io.StringIO(text, newline=""), COLUMNS):
        yield {k: v for k, v in row.items() if v.strip()}


def _plain(session: Session, cloud: str, rows: Iterable[Row], day: date) -> Iterator[Offer]:
    """Offers of a row that is a machine with its accelerators, with up to two prices."""
    for row in rows:
        if not row.AcceleratorName:
            session.leave_out("no GPU")
            continue
        for purchase, usd in _prices(session, cloud, row):
            yield from _offer(session, cloud, row, row.InstanceType, purchase, usd, day)


def _prices(session: Session, cloud: str, row: Row) -> Iterator[tuple[Purchase, float]]:
    if row.Price is not None:
        yield "on_demand", row.Price
    if row.SpotPrice is None:
        return
    if cloud in BID_FLOORS:
        session.leave_out("a bid floor, not a price")
    elif cloud == "aws" and row.Price and _no_market(row.SpotPrice / row.Price):
        session.leave_out("spot at 100% or 10% of on-demand: there is no market")
    else:
        yield "spot", row.SpotPrice


def _no_market(ratio: float) -> bool:
    return math.isclose(ratio, 1.0, rel_tol=1e-4) or math.isclose(ratio, 0.1, rel_tol=1e-4)


def _gcp(session: Session, rows: Iterable[Row], day: date) -> Iterator[Offer]:
    """Offers with host and accelerators of one zone added: the host row alone is a fraction of the
    price."""
    machines = {i.instance_type: i for i in instances() if i.provider == "gcp"}
    hosts: list[Row] = []
    accelerators: dict[tuple[str, int, str], Row] = {}
    for row in rows:
        if row.AcceleratorName.startswith("tpu"):
            session.leave_out("a TPU slice, whose size counts cores or chips")
        elif row.AcceleratorName and not row.InstanceType:
            zone = row.AvailabilityZone or row.Region
            accelerators[row.AcceleratorName, int(row.AcceleratorCount), zone] = row
        elif row.AcceleratorName:
            session.leave_out("a machine with an accelerator that may be counted twice")
        else:
            hosts.append(row)
    for host in hosts:
        name = GCP_ACCELERATORS.get(host.InstanceType.rpartition("-")[0])
        if name is None or host.InstanceType not in machines:
            session.leave_out("a host of no known accelerator")
            continue
        count = machines[host.InstanceType].gpu_count
        with_gpus = accelerators.get((name, count, host.AvailabilityZone or host.Region))
        if with_gpus is None:
            session.leave_out("a host in a zone without its accelerator")
            continue
        sums: tuple[tuple[Purchase, float | None, float | None], ...] = (
            ("on_demand", host.Price, with_gpus.Price),
            ("spot", host.SpotPrice, with_gpus.SpotPrice),
        )
        for purchase, host_usd, gpus_usd in sums:
            if host_usd is not None and gpus_usd is not None:
                usd = host_usd + gpus_usd
                yield from _offer(
                    session, "gcp", with_gpus, host.InstanceType, purchase, usd, day,
                    note=f"host {host_usd:g} and accelerators {gpus_usd:g} USD/h added",
                )  # fmt: skip


def _offer(
    session: Session,
    cloud: str,
    row: Row,
    instance_type: str,
    purchase: Purchase,
    usd: float,
    day: date,
    note: str = "",
) -> Iterator[Offer]:
    count = row.AcceleratorCount
    if not count.is_integer():
        session.leave_out("a fraction of a GPU")
        return iter(())
    return offer(
        session,
        provider=cloud,
        instance_type=instance_type,
        region=row.Region,
        purchase=purchase,
        usd_per_hour=usd,
        observed_at=day,
        source=f"SkyPilot catalogue v8: {cloud}",
        quality="medium",
        gpu_name=row.AcceleratorName,
        gpu_count=int(count),
        note=note,
    )
