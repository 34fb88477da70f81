"""The gpu-price-index collection: prices of Shadeform, RunPod and Verda, daily, without a key.

Its published index names the newest snapshot, which holds one observation a line, gzipped. Prices
are of the whole instance, before any adjustment of the index. Left out are its Vast.ai hosts, which
are read directly, and its hand-kept rate cards. `vram_gb` of Verda is the total of all GPUs.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

from core.errors import shown
from core.machine.offer import Offer, Purchase
from pricing.fetch import decoding
from pricing.fetch.network import SourceError
from pricing.fetch.session import GZIP, Session
from pricing.offers import ANY_REGION
from pricing.providers.boundary import MOST_GPUS, Raw, offer, parsed

BASE = "https://raw.githubusercontent.com/henryzhangpku/gpu-price-index/main"
SNAPSHOT_BYTES = 32_000_000
COLUMNS = ("published_at", "snapshot")
_SNAPSHOT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{6}Z\.jsonl\.gz", re.ASCII)
# A card that is sold as a board and in a PCIe slot cannot be told without its form.
FORMS = ("A100", "H100")
PURCHASES: dict[str, Purchase] = {
    "on_demand": "on_demand", "community": "on_demand", "spot": "spot",
}  # fmt: skip


class Observation(Raw):
    source: str  # a seller, or shadeform:CLOUD
    source_sku: str
    gpu_model: str
    gpu_count: int
    usd_per_hour_total: float
    commitment: str
    form_factor: Literal["sxm", "pcie", "unknown"] = "unknown"
    vram_gb: float | None = None
    region: str | None = None
    available: bool | None = None
    observed_at: datetime
    currency: str = "USD"
    price_kind: str = "quoted"  # else the floor of a list that the seller does not publish
    payload: dict[str, object]


def fetch(session: Session) -> Iterable[Offer]:
    """Offers of the newest snapshot."""
    name = _newest(session)
    data, _ = session.body(f"{BASE}/snapshots/{name}", accept=GZIP)
    plain = b"".join(decoding.inflated([data], "gzip", SNAPSHOT_BYTES))
    lines = filter(None, decoding.text(plain).split("\n"))
    rows = (decoding.strict_json(line) for line in lines)
    for row in parsed(session, Observation, rows):
        yield from _offer(session, row)


def _newest(session: Session) -> str:
    table, _ = session.text(f"{BASE}/series/index_values.csv")
    rows = list(decoding.csv_rows(io.StringIO(table, newline=""), COLUMNS))
    name = max(rows, key=lambda r: r["published_at"])["snapshot"] if rows else ""
    if not _SNAPSHOT.fullmatch(name):
        raise SourceError(f"The index names the snapshot {shown(name)}.")
    return name


def _offer(session: Session, row: Observation) -> Iterator[Offer]:
    seller, _, cloud = row.source.partition(":")
    if seller not in ("shadeform", "runpod", "datacrunch"):
        session.leave_out("a marketplace that is read directly, or a rate card kept by hand")
        return
    if row.currency != "USD" or row.commitment not in PURCHASES or row.price_kind != "quoted":
        session.leave_out("no price in dollars of a known kind")
        return
    if row.form_factor == "unknown" and row.gpu_model.upper().startswith(FORMS):
        session.leave_out("the form of the GPU is not stated")
        return
    if seller == "shadeform" and not row.available:
        session.leave_out("nothing left to rent")
        return
    memory_gib = row.vram_gb
    if seller == "shadeform":
        machine = f"{cloud}_{row.source_sku.replace('_', '-')}"
    elif seller == "runpod":  # as RunPod's own list is read
        name = str(row.payload.get("display_name", row.gpu_model)).replace(" ", "-")
        market = row.source_sku.rpartition(":")[2].upper()
        machine = f"{row.gpu_count}x_{name}_{market}"
    else:
        seller, machine = "verda", row.source_sku.partition(":")[0]
        if memory_gib is not None and 0 < row.gpu_count <= MOST_GPUS:
            memory_gib /= row.gpu_count
    yield from offer(
        session,
        provider=seller,
        instance_type=machine,
        region=row.region or ANY_REGION,
        purchase=PURCHASES[row.commitment],
        usd_per_hour=row.usd_per_hour_total,
        observed_at=min(row.observed_at.date(), session.today),
        source="gpu-price-index: snapshots",
        quality="high" if seller == "verda" else "medium",
        gpu_name=row.gpu_model,
        gpu_count=row.gpu_count,
        gpu_memory_gib=memory_gib,
        form="" if row.form_factor == "unknown" else row.form_factor,
    )
