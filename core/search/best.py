"""What a search is asked for, and what it finds: jobs, the winner of each, the nearest miss."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import Layouts
from core.machine.cluster import Cluster
from core.search.plan import Counts
from core.search.recommended import MOST_PROBABILITY_OOM
from core.time.step import Step

MAX_PROBABILITY_OOM = 0.2
Z_80 = 0.8416212335729143  # standard normal quantile of 1 - MAX_PROBABILITY_OOM
Z_95 = 1.6448536269514722  # of 1 - MOST_PROBABILITY_OOM, which a recommended plan may have
LESS_WORTH = 1e-12  # a layout that only may fit, whatever its speed, than one that surely does

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One machine shape at one GPU count: what a layout is searched for."""

    cluster: Cluster  # of scalars
    num_gpus: int
    host_bytes: float = float("inf")  # of the host's memory, for each GPU; what a search may use
    accelerator: str = ""  # by its name in the tables; no search asks for it


def usable_share(memory_sigma: float, *, surely: bool) -> float:
    """The share of a device's memory that a layout may be forecast to need, so that it surely fits,
    or so that it may fit."""
    return float(np.exp(-(Z_95 if surely else Z_80) * memory_sigma))


def is_sure(probability_oom: Floats) -> NDArray[np.bool_]:
    """Whether layouts surely fit: with a chance that a recommended plan may have."""
    return np.asarray(probability_oom <= MOST_PROBABILITY_OOM + 1e-9)  # rounding of the limit


def worth(tokens_per_s: Floats, probability_oom: Floats) -> Floats:
    """By which the best layout of a job is chosen: those that surely fit first, then by speed."""
    return tokens_per_s * np.where(is_sure(probability_oom), 1.0, LESS_WORTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The winner of each job that has one, as columns aligned with `job` (row numbers of the
    jobs). `closest` describes the candidate that misses the memory by least, if none fits."""

    job: Ints
    asked: Ints  # the number of the question whose layout each row has, where several were asked
    layouts: Layouts
    step: Step
    memory: dict[str, Floats]
    host_bytes: Floats  # that one GPU keeps in the host's memory
    probability_oom: Floats
    counts: Counts
    counts_of: dict[str, Ints]  # the same of each job, by core.search.plan.COUNTED
    removed_of: dict[str, Ints]  # of each job and reason
    jobs_out_of_memory: Ints
    jobs_without_layout: Ints
    jobs_cut: Ints  # not looked at: the search was over its budget
    removed: Counter[str] = field(default_factory=Counter)
    closest: Closest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Closest:
    """The nearest miss: bytes needed against bytes there are."""

    job: int
    need_bytes: float
    limit_bytes: float
    usable_bytes: float  # what a plan may need, so that it fits with the asked probability
    memory: dict[str, float]
    layout_row: Layouts
    asked: int = 0  # the number of its question

    @property
    def over(self) -> float:
        """Bytes needed over those of the device."""
        return self.need_bytes / self.limit_bytes


def counts_in(counts_of: dict[str, Ints]) -> Counts:
    """The counts of all jobs together."""
    return Counts(**{name: int(column.sum()) for name, column in counts_of.items()})


def removed_in(removed_of: dict[str, Ints]) -> Counter[str]:
    """What each rule removed, of all jobs together."""
    return Counter({reason: int(column.sum()) for reason, column in removed_of.items()})
