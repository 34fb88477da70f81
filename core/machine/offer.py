"""Offer: the price of one instance at one place and day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Purchase = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "capacity_block", "owned"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """USD per hour of one whole instance. A row with two prices is two offers."""

    provider: str
    instance_type: str
    accelerator: str  # canonical id of hardware/accelerators.csv
    gpu_count: int
    region: str
    purchase: Purchase
    usd_per_hour: float | None  # of the whole instance; None: hardware known, price not
    scale_out_gbit_per_s: float | None  # of the whole instance; None: the source does not say
    observed_at: str  # ISO date or month, as the source dates it
    source: str
    quality: str  # high, medium, low
    note: str = ""
