"""What a plan is made of: a question, asked of a rented machine at one number of GPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.layout.layouts import Choices
from core.layout.workload import Workload
from core.machine.accelerator import Accelerator
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.machine.offer import Offer
from core.machine.rented import NO_TERMS, Network, Supply, Terms
from core.numeric import as_float
from core.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is trained, with what software and how: all that a search depends on except its jobs."""

    work: Workload
    eff: Efficiency
    choices: Choices

    @property
    def memory_sigma(self) -> float:
        """The error of the memory forecast: standard deviation of its log."""
        return as_float(self.eff.memory_sigma)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One offer and the machine it rents."""

    offer: Offer
    accelerator: Accelerator
    cluster: Cluster
    network: Network
    supply: Supply
    unit_gpus: int  # that the seller prices; `offer` is of a whole machine once it is rented
    unit_usd_per_hour: float | None  # the price of so many; None: no price
    host_bytes: float = 0.0  # of the host's memory that can be used, for each GPU; 0: not stated
    largest_num_gpus: int | None = None  # size of a fixed cluster
    terms: Terms = NO_TERMS  # costs besides the machine, and discounts
    calibration: str = ""  # id of the calibration its rates come from
    calibrated_with: str = ""  # the stack that it was measured with; '' if nobody said
    measured: frozenset[str] = frozenset()  # measured constants of core.machine.calibration
    domain_given: bool = False  # the scenario says how many GPUs the scale-up link joins

    @property
    def network_known(self) -> bool:
        """Whether the network between machines is stated, documented, given or measured."""
        return self.network.is_known or "scale_out" in self.measured

    @property
    def largest_job(self) -> float:
        """GPUs of the largest job that something joins: where no network is known, one machine, or
        what the scale-up link joins of machines that are not a cloud's."""
        if self.network.basis != "none":
            return math.inf
        joined = int(np.asarray(self.cluster.scale_up_domain)) if self.network.is_private else 1
        return max(self.network.gpus_per_machine, joined)

    @property
    def most_gpus(self) -> float:
        """GPUs of the largest job that there are machines for, and something that joins them."""
        return min(self.largest_num_gpus or math.inf, self.largest_job)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanJob:
    """One question on one rented machine at one number of GPUs: every input of a plan."""

    scenario: Scenario  # with its automatic choices fixed: stack, precision, CUDA graphs
    question: Question
    machine: Machine  # with the offer that this many GPUs rent
    cluster: Cluster  # at this number of GPUs
    num_gpus: int
    num_tokens: float  # that the GPUs process, padding included
    host_bytes: float  # of the host's memory that a search may use, for each GPU
    measured_factor: float = 1.0  # on computed seconds, of measured runs, the user's among them
    is_sure: bool = False  # whether layouts must fit as surely as that of a recommended plan

    @property
    def work(self) -> Workload:
        """What is trained."""
        return self.question.work

    @property
    def eff(self) -> Efficiency:
        """What the software reaches of the hardware."""
        return self.question.eff

    @property
    def offer(self) -> Offer:
        """What is rented."""
        return self.machine.offer
