"""The archived price pages of the gpu-price-index collection: ten sellers, 2023 to 2026, no key.

One CSV holds what the pages of the Internet Archive printed, a row a price, with the moment of the
capture; its last columns are the collection's own adjustments and are not read. Left out are prices
of the GPU alone, reservations (of various terms), "from" prices, cards whose form is not stated,
and Fluidstack, whose pages of 2023 it misreads. These are old prices: they fill the history and are
no offers.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from pydantic import field_validator

from core.errors import shown
from core.machine.offer import Offer
from pricing.fetch import decoding
from pricing.fetch.session import Session
from pricing.offers import ANY_REGION
from pricing.providers.boundary import MOST_GPUS, Raw, offer, parsed
from pricing.providers.gpu_price_index import BASE, FORMS, PURCHASES

URL = f"{BASE}/backfill/observations.csv"
SOURCE = "gpu-price-index: archived price pages"
COLUMNS = (
    "source", "captured", "sku", "gpu_model", "gpu_count", "form_factor", "vram_gb", "commitment",
    "price_per_instance_hour", "currency", "price_kind", "basis",
)  # fmt: skip
SELLERS = {
    "coreweave": "coreweave", "crusoe": "crusoe", "datacrunch": "verda",
    "digitalocean": "digitalocean", "hyperstack": "hyperstack", "lambda": "lambda",
    "nebius": "nebius", "paperspace": "paperspace", "runpod": "runpod",
    "voltagepark": "voltagepark",
}  # fmt: skip


class Row(Raw):
    source: str
    captured: datetime
    sku: str
    gpu_model: str
    gpu_count: int
    form_factor: str
    vram_gb: float | None
    commitment: str
    price_per_instance_hour: float
    currency: str
    price_kind: str
    basis: str

    @field_validator("captured", mode="before")
    @classmethod
    def _moment(cls, text: str) -> datetime:
        return datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=UTC)

    @field_validator("vram_gb", mode="before")
    @classmethod
    def _or_none(cls, text: str) -> str | None:
        return text or None

    @property
    def machine(self) -> str:
        """The seller's name where it has one, as its live list is read; else the GPUs. Pages were
        redesigned, so their own wording would break a price in two."""
        if self.source == "datacrunch":
            return self.sku.partition(" ")[0]
        if self.source == "runpod":
            market = "COMMUNITY" if "community" in self.sku.lower() else "SECURE"
            return f"{self.gpu_count}x_{self.gpu_model.replace(' ', '-')}_{market}"
        return f"{self.gpu_count}x {self.gpu_model}"


def fetch(session: Session) -> Iterable[Offer]:
    """Every price of the archive as an offer of its day."""
    table, _ = session.text(URL)
    rows = decoding.csv_rows(io.StringIO(table, newline=""), COLUMNS)
    for row in parsed(session, Row, rows):
        yield from _offer(session, row)


def _offer(session: Session, row: Row) -> Iterator[Offer]:
    if row.source not in SELLERS:
        session.leave_out(f"a seller that is not read: {shown(row.source)}")
    elif row.commitment not in PURCHASES or row.price_kind != "quoted" or row.currency != "USD":
        session.leave_out("no price in dollars of a known kind")
    elif row.basis != "instance":
        session.leave_out("the GPU alone, without its host")
    elif row.form_factor == "unknown" and row.gpu_model.upper().startswith(FORMS):
        session.leave_out("the form of the GPU is not stated")
    elif not 0 < row.gpu_count <= MOST_GPUS:
        session.refuse(row.sku, "its GPU count is not 1 to 1024.")
    else:
        yield from offer(
            session,
            provider=SELLERS[row.source],
            instance_type=row.machine,
            region=ANY_REGION,
            purchase=PURCHASES[row.commitment],
            usd_per_hour=row.price_per_instance_hour,
            observed_at=min(row.captured.date(), session.today),
            source=SOURCE,
            quality="medium",
            gpu_name=row.gpu_model,
            gpu_count=row.gpu_count,
            gpu_memory_gib=row.vram_gb,
            form="" if row.form_factor == "unknown" else row.form_factor,
        )
