"""Answer: ranked plans, each with its parts, and the exclusions with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import isnan
from typing import Any

from numpy.typing import NDArray

from core.cost.run_cost import CostBasis, RunCost
from core.cost.uncertain import Uncertain
from core.evidence.residual import WeightedRun
from core.machine.offer import Offer
from core.numeric import as_float
from core.search.job import PlanJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one job is divided over its GPUs."""

    tp: int
    pp: int
    virtual_stages: int
    cp: int
    ep: int
    dp_replicate: int
    dp_shard: int
    sharding: str
    micro_batch_size: int
    num_microbatches: int
    recompute: str
    etp: int = 1  # divides one expert
    schedule: str = "interleaved"  # with one virtual stage: plain 1F1B
    context_parallel: str = "ring"
    reshard_after_forward: bool = True
    offload_optimizer: str = "none"  # none, cpu or nvme
    offload_params: str = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCorrection:
    """Why the time of a plan is corrected: it was chosen for its forecast
    (core/evidence/choice.py). The cost has the corrected figures and the uncorrected means."""

    num_machines: int  # kinds of accelerators that it was chosen from, itself among them
    lead: float  # share of the 16-bit peak over the mean of their best, less 1
    shrink: float  # share of such leads that was not there when measured


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNetwork:
    """What joins the machines of a plan, and by which authority."""

    gbit_per_s: float  # of one whole machine, one direction
    basis: str  # offer, product, usual (of its accelerator), given
    is_assumed: bool  # no source states it of this offer or product
    product: str  # the documented product; '' if none
    source: str
    source_date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NearbyRuns:
    """What was measured of runs like the plan, and how it moved the forecast."""

    moved_log: float  # of the throughput, by published runs and what the user measured
    variance_left: float  # share of the forecast's own variance, after both
    moved_by_runs: float  # share, by published runs alone
    explained: float  # share of the variance that published runs explain
    distance: float  # to the nearest of them; 1: the errors of one stack are still mostly alike
    sentence: str  # '' if they were not asked
    runs: tuple[WeightedRun, ...] = ()  # that moved it, the largest weight first


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHalfNetwork:
    """The plan, had its network half the rate."""

    step_factor: float  # on its step
    tokens_per_s: float
    wall_clock_hours: float
    usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSupply:
    """How many GPUs of a plan's offer can be had without asking."""

    most_gpus: float | None  # None: no bound
    is_assumed: bool  # usual of such sellers; no source states it of this one
    source: str
    source_date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One priced (or unpriced) way to do the run. Seconds and bytes are of one step and GPU."""

    id: str  # stable name inside one price snapshot: what `plan=` in a link holds
    rank: int  # 1 is the recommended one
    job: PlanJob = field(repr=False, compare=False)  # what it is computed from
    offer: Offer
    num_gpus: int
    num_nodes: int
    layout: Layout
    tokens_per_s: Uncertain  # steady state; the mean is that of runs, tokens over mean time
    tokens_per_s_per_gpu: float
    mfu: float
    hfu: float
    model_flops_per_s_per_gpu: float  # counted as MFU counts them
    step_s: Mapping[str, float]  # by part, in the order they are drawn; sums to the step
    memory_bytes: Mapping[str, float]  # by part; sums to the peak
    memory_capacity_bytes: float
    memory_counted_bytes: Mapping[str, float]  # the peak by core.memory.counters.COUNTERS
    probability_oom: float
    num_steps: float
    gpu_hours: float  # that are paid
    wall_clock_hours: float  # P50, steady state: without failures and start-up
    usd_per_hour: float | None  # of all machines, at the price as seen; None: no price
    usd_per_gpu_hour: float | None
    cost: RunCost
    meets_deadline: bool  # with the asked confidence
    meets_budget: bool  # the mean of what is paid
    frontier: bool  # no other priced plan is expected to be both cheaper and faster
    assumptions: tuple[str, ...]  # each a sentence
    stack: str = "generic"  # that trains; generic: no particular one, without a launch file
    precision: str = ""  # of core.scenario.types.Precision; '': of the scenario
    compiled: bool | None = None  # by torch.compile; None: as of the scenario
    cuda_graphs: bool | None = None
    calibration: str = ""  # id of the calibration of the machine's rates
    against: tuple[str, ...] = ()  # why it is recommended only if no other plan is left
    no_launch: str = ""  # why no launch file of its stack takes it; '': one does
    chosen_correction: ChosenCorrection | None = None  # None: no lead, or measured
    network: PlanNetwork | None = None  # None: one machine, or nothing joins several
    at_half_network: AtHalfNetwork | None = None  # where the network is assumed
    nearby: NearbyRuns | None = None  # None: measured runs were not asked
    supply: PlanSupply | None = None  # None: not of a seller
    startup_hours: float = 0.0  # from the request of the machines until training begins
    least_billed_hours: float = 0.0  # minimum billing or term
    throughput_sigma: float = 0.0  # width of the speed forecast: standard deviation of its log
    cost_basis: CostBasis | None = None  # columns of one row; None: made up

    @property
    def basis(self) -> CostBasis:
        """What the cost follows from, as columns of one row."""
        if self.cost_basis is None:
            raise LookupError(f"{self.id} has no basis of its cost")
        return self.cost_basis

    @property
    def expected_hours(self) -> float:
        """Mean hours of the run."""
        return as_float(self.cost.hours.mean)

    @property
    def expected_usd(self) -> float | None:
        """Mean dollars of the run; None: no price."""
        return as_float(self.cost.total.mean) if self.cost.has_price else None

    @property
    def paid_usd(self) -> float | None:
        """Mean dollars that are signed for; None: no price."""
        return as_float(self.cost.paid.mean) if self.cost.has_price else None

    @property
    def paid(self) -> Uncertain | None:
        """Dollars that are signed for; None: no price."""
        return self.cost.paid if self.cost.has_price else None

    @property
    def chance_on_time(self) -> float | None:
        """Chance of the deadline; None: there is none."""
        return _known(self.cost.chance_on_time)

    @property
    def chance_in_budget(self) -> float | None:
        """Chance that what is paid keeps to the budget; None: no budget or no price."""
        return _known(self.cost.chance_in_budget)

    @property
    def usd(self) -> Uncertain | None:
        """Dollars without failures, at the price as seen; None: no price."""
        return self.cost.failure_free if self.cost.has_price else None

    @property
    def hours(self) -> Uncertain:
        """Hours without failures: start-up and training."""
        return self.cost.failure_free_hours

    @property
    def training_hours(self) -> Uncertain:
        """Hours of the training without failures."""
        return self.cost.failure_free_hours.plus(-self.startup_hours)

    @property
    def billed_hours(self) -> float:
        """Hours of each machine that are paid without failures, at the median."""
        return max(as_float(self.hours.p50), self.least_billed_hours)

    @property
    def term_usd(self) -> float | None:
        """Mean dollars of the whole terms of a reservation; None: none is bought, or no price."""
        if not self.cost.num_terms or not self.cost.has_price:
            return None
        return as_float(self.cost.committed_usd)


def _known(chance: object) -> float | None:
    value = as_float(chance)
    return None if isnan(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Why some candidates are not among the plans."""

    reason: str  # a stable word: no_price, memory, ...
    count: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What became of the candidate layouts; the other counts add up to `candidates`."""

    candidates: int = 0
    removed: int = 0  # by a rule: no legal layout
    pruned_by_memory: int = 0
    pruned_by_time: int = 0  # proven to be no faster than another layout that fits
    evaluated: int = 0  # timed
    cut: int = 0  # not evaluated: the search was over its budget


COUNTED = tuple(f.name for f in fields(Counts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A condition of the recommended plan."""

    name: str  # a stable word: deadline, budget, supply, price, launch, memory
    num_passing: int  # of all plans
    is_empty: bool  # nothing that passes the gates before it passes: it was left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """Why the first plan is the first: rows of `Answer.points`, which are ranked."""

    base: int  # the cheapest that passes the gates, or ranked by time the fastest
    cheapest: int  # the cheapest of all, or the fastest
    num_passing: int
    failed: tuple[str, ...]  # gates that `cheapest` does not pass
    gates: tuple[Gate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one scenario."""

    plans: tuple[Plan, ...]  # ranked, at most `top`
    num_plans: int  # ranked in all
    points: Mapping[str, NDArray[Any]]  # every ranked plan as columns, for charts (see search.py)
    num_candidates: int  # layouts x clusters, legal or not
    excluded: tuple[Exclusion, ...]
    nothing_fits: str | None  # a sentence: by how much, the largest part, the nearest change
    counts: Counts = Counts()
    not_searched: str = ""  # a sentence, where the search was over its budget: what was left out
    recommendation: Recommendation | None = None  # of the first plan; None: there is none
    # For each accelerator at each cloud, its share of `excluded`, by reason.
    left_out_at: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)

    def chosen(self, plan_id: str) -> Plan | None:
        """The listed plan with that id, else the best plan; None where there is no plan."""
        named = (p for p in self.plans if p.id == plan_id)
        return next(named, self.plans[0] if self.plans else None)
