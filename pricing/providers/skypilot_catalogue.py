"""The SkyPilot catalogue: one CSV per cloud, without a key, with a mirror for busy days.

Version 9 of a cloud's file is read, and version 8 where there is no other. Only the files of AWS
and GCP are refreshed by a robot; the others are kept by hand, some for a year, and carry no date:
their rows are of low quality.

Traps of these files: GCP prints the host and its accelerators as separate rows, which have to be
added; a TPU row is a whole slice, and a price of 700 means none; an AWS spot price equal to
on-demand or to a tenth of it means that there is no market; the spot price of Vast.ai is a bid
floor; the memory column has a different unit per cloud and is not read. Mithril (bid floors),
Seeweb (no currency stated) and Prime Intellect (resales of 2025) are not taken from here.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

from core.machine.offer import Offer, Purchase
from hardware.instances import instances
from pricing.fetch import decoding
from pricing.fetch.network import SourceError
from pricing.fetch.session import Session
from pricing.providers import tpu_slices
from pricing.providers.boundary import Raw, cheapest_zone, offer, parsed

FIRST = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs"
MIRROR = "https://skypilot-catalog.s3.us-east-1.amazonaws.com/catalogs"
VERSIONS = ("v9", "v8")  # newest first
CLOUDS = (
    "aws", "gcp", "azure", "lambda", "runpod", "vast", "verda", "nebius", "oci", "shadeform",
    "hyperstack", "spheron", "yotta", "lium", "cudo", "jarvislabs", "hyperbolic",
)  # fmt: skip
REFRESHED = ("aws", "gcp")
NO_PRICE = 700.0  # of a TPU slice
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
            file = _file(session, cloud)
            rows = parsed(session, Row, _cells(file.text))
            yield from cheapest_zone((_gcp if cloud == "gcp" else _plain)(session, file, rows))
        except SourceError as e:
            session.part_failed(f"{cloud}: {e}", provider=cloud)


class File(NamedTuple):
    cloud: str
    version: str
    text: str
    day: date


def _file(session: Session, cloud: str) -> File:
    """The newest version of a cloud's file, of the first host that has it."""
    failed: dict[str, SourceError] = {}
    for version in VERSIONS:
        for host, base in (("", FIRST), ("The mirror: ", MIRROR)):
            try:
                text, day = session.text(f"{base}/{version}/{cloud}/vms.csv")
                return File(cloud, version, text, day)
            except SourceError as e:
                failed[host] = e
    raise SourceError(" ".join(f"{host}{e}" for host, e in failed.items()))


def _cells(text: str) -> Iterator[dict[str, str]]:
    for row in decoding.csv_rows(io.StringIO(text, newline=""), COLUMNS):
        yield {k: v for k, v in row.items() if v.strip()}


def _plain(session: Session, file: File, rows: Iterable[Row]) -> Iterator[Offer]:
    """Offers of a row that is a machine with its accelerators, with up to two prices."""
    for row in rows:
        if not row.AcceleratorName:
            session.leave_out("no GPU")
            continue
        for purchase, usd in _prices(session, file.cloud, row):
            yield from _offer(session, file, row, row.InstanceType, purchase, usd)


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


def _gcp(session: Session, file: File, rows: Iterable[Row]) -> Iterator[Offer]:
    """Offers with host and accelerators of one zone added: the host row alone is a fraction of the
    price. TPUs are offered by the chip."""
    machines = {i.instance_type: i for i in instances() if i.provider == "gcp"}
    hosts: list[Row] = []
    accelerators: dict[tuple[str, int, str], Row] = {}
    slices: list[tuple[str, object, Row]] = []
    for row in rows:
        zone = row.AvailabilityZone or row.Region
        if tpu_slices.is_slice(row.AcceleratorName):
            slices.append((row.AcceleratorName, zone, row))
        elif row.AcceleratorName and not row.InstanceType:
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
                    session, file, with_gpus, host.InstanceType, purchase, usd,
                    note=f"host {host_usd:g} and accelerators {gpus_usd:g} USD/h added",
                )  # fmt: skip
    for one_chip, chips, row in tpu_slices.smallest(slices):
        for purchase, slice_usd in (("on_demand", row.Price), ("spot", row.SpotPrice)):
            if slice_usd is None or slice_usd == NO_PRICE:
                session.leave_out(f"a TPU without {purchase} price")
            else:
                yield from _offer(session, file, row, one_chip, purchase, slice_usd / chips)


def _offer(
    session: Session,
    file: File,
    row: Row,
    instance_type: str,
    purchase: Purchase,
    usd: float,
    note: str = "",
) -> Iterator[Offer]:
    count = row.AcceleratorCount
    refreshed = file.cloud in REFRESHED
    if not count.is_integer():
        session.leave_out("a fraction of a GPU")
        return iter(())
    return offer(
        session,
        provider=file.cloud,
        instance_type=instance_type,
        region=row.Region,
        purchase=purchase,
        usd_per_hour=usd,
        observed_at=file.day,
        source=f"SkyPilot catalogue {file.version}: {file.cloud}",
        quality="medium" if refreshed else "low",
        gpu_name=row.AcceleratorName,
        gpu_count=int(count),
        note=note if refreshed else "a file kept by hand, of unknown age",
    )
