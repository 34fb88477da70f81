"""What a seller rents with a machine: the network between machines, supply and further costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.machine.accelerator import Source

Basis = Literal["offer", "product", "usual", "none", "given"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network between machines of one offer."""

    basis: Basis
    gpus_per_machine: int
    gbit_per_s: float | None  # of one whole machine, one direction; None: one machine only
    fabric: str  # a row of fabrics.csv
    source: Source
    product: str = ""  # the documented product
    is_size_assumed: bool = False  # the price is of one GPU, and no source prints the machine
    is_private: bool = False  # an own cluster, a quote, or no offer at all
    apart: str = ""  # a cluster product of the seller, which this price does not buy
    conflict: str = ""  # a sentence, where the offer contradicts its product

    @property
    def is_known(self) -> bool:
        """Whether the user or a source states it of this offer or its product."""
        return self.basis in ("offer", "product", "given") and not self.source.assumed


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """What one offer can be had for."""

    most_gpus: float  # infinite: no bound
    bound: Source  # of `most_gpus`
    startup_hours: float  # until training begins
    startup: Source
    least_billed_hours: float  # the longer one of minimum billing and minimum term
    billing: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a run at one seller pays in addition to its instances, and its credits."""

    egress_usd: float = 0.0  # once
    checkpoint_usd_per_hour: float = 0.0  # storage
    data_usd_per_hour: float = 0.0  # storage
    credit_usd: float = 0.0

    @property
    def storage_usd_per_hour(self) -> float:
        """Storage of checkpoints and data."""
        return self.checkpoint_usd_per_hour + self.data_usd_per_hour


NO_TERMS = Terms()
