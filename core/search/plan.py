"""Answer: ranked plans, each with its parts, and the exclusions with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from numpy.typing import NDArray

from core.machine.offer import Offer
from core.money.cost import billed_hours
from core.money.purchase import TERM_HOURS, whole_terms_usd
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
class Interval:
    """P10, P50 and P90 of a forecast."""

    p10: float
    p50: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Mean, P10, P50 and P90 of what a run takes in all."""

    expected: float
    p10: float
    p50: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A plan all in: start-up, failures, preemption by the policy bought, billing, a price that
    may have moved."""

    hours: Expected  # infinite: it never ends
    usd: Expected | None  # None: no price
    chance_on_time: float | None  # None: no deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCorrection:
    """What is expected of a plan that was chosen for its forecast (core/evidence/choice.py)."""

    num_machines: int  # kinds of accelerators that it was chosen from, itself among them
    lead: float  # share of the 16-bit peak over the mean of their best, less 1
    shrink: float  # share of such leads that was not there when measured
    total: Total  # without that part of the lead


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
    tokens_per_s: Interval
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
    usd_per_gpu_hour: float | None
    usd: Interval | None  # had nothing failed; p10 is the cheap end; None: no price
    total: Total
    meets_deadline: bool  # with the asked confidence
    meets_budget: bool  # as expected
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

    @property
    def expected_hours(self) -> float:
        """Mean hours all in."""
        return self.total.hours.expected

    @property
    def expected_usd(self) -> float | None:
        """Mean dollars all in; None: no price."""
        return None if self.total.usd is None else self.total.usd.expected

    @property
    def training_hours(self) -> Interval:
        """Steady state: P10 (fast), P50 and P90 (slow, at the P10 of the throughput)."""
        at, tokens = self.tokens_per_s, self.wall_clock_hours * self.tokens_per_s.p50
        return Interval(p10=tokens / at.p90, p50=self.wall_clock_hours, p90=tokens / at.p10)

    @property
    def hours(self) -> Interval:
        """Start-up and training: P10 (fast), P50 and P90 (slow)."""
        run, start = self.training_hours, self.startup_hours
        return Interval(p10=start + run.p10, p50=start + run.p50, p90=start + run.p90)

    @property
    def billed_hours(self) -> float:
        """Hours of each machine that are paid, at the median."""
        return self.billed(self.hours.p50)

    @property
    def usd_per_hour(self) -> float | None:
        """Dollars per hour of all machines; None: no price."""
        price = self.offer.usd_per_hour
        return None if price is None else self.num_nodes * price

    @property
    def term_usd(self) -> float | None:
        """Dollars of the whole terms of a reservation, of which the run is counted its hours; None:
        none is bought, or no price."""
        term, price = TERM_HOURS.get(self.offer.purchase), self.usd_per_hour
        if term is None or price is None:
            return None
        return as_float(
            whole_terms_usd(run_hours=self.hours.p50, term_hours=term, usd_per_hour=price)
        )

    def billed(self, hours: float) -> float:
        """Hours that are paid if start-up and run take so long in all."""
        return as_float(
            billed_hours(run_hours=hours, startup_hours=0.0, least_hours=self.least_billed_hours)
        )


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
