"""What a search has found for each question, and from it the winners with all figures of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from core.evidence.uncertainty import probability_above
from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.memory.memory import PARTS as MEMORY_PARTS
from core.memory.memory import peak_bytes
from core.memory.offload import host_bytes, work_on
from core.search.asked import Asked, Together
from core.search.best import Best, Closest, Job, counts_in, removed_in
from core.search.columns import Floats, Ints, joined_layouts
from core.search.fastest import Machines, Problem
from core.search.plan import COUNTED
from core.time.step import Step, step


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A candidate that does not fit."""

    job: int
    need_bytes: float
    limit_bytes: float
    layout: Layouts  # one row

    @property
    def over(self) -> float:
        """Bytes needed over those of the device."""
        return self.need_bytes / self.limit_bytes


@dataclass(slots=True, kw_only=True)
class Found:
    """What the search has found so far for one question."""

    problem: Problem
    counts: dict[str, Ints]  # of each job
    removed: dict[str, Ints]
    misfits: list[int]
    illegal: list[int]
    cut: list[int]
    nearest: Missed | None = None
    num_timed: Ints  # of each job
    without: list[int]  # jobs of which no layout has a finite time
    winners: list[tuple[Ints, Layouts]]

    @classmethod
    def nothing(cls, problem: Problem, num_jobs: int) -> Found:
        """Before the search."""
        zeros = np.zeros(num_jobs, dtype=np.intp)
        return cls(
            problem=problem, counts={name: zeros.copy() for name in COUNTED}, removed={},
            misfits=[], illegal=[], cut=[], num_timed=zeros, without=[], winners=[],
        )  # fmt: skip

    def take_over(self, twin: Found) -> None:
        """What was found for a question with the same candidates, before they are timed."""
        self.counts = {name: column.copy() for name, column in twin.counts.items()}
        self.removed, self.misfits, self.illegal = twin.removed, twin.misfits, list(twin.illegal)
        self.cut, self.nearest = twin.cut, twin.nearest

    def timed(self) -> None:
        """Count what was timed, once the search has ended."""
        self.counts["evaluated"] = self.num_timed
        self.counts["pruned_by_time"] -= self.num_timed
        self.illegal += self.without


def closest_of(found: Found, jobs: Sequence[Job]) -> Closest | None:
    """The nearest miss with its bytes by part; None if something fits."""
    p, miss = found.problem, found.nearest
    if miss is None or any(len(jobs) for jobs, _ in found.winners):
        return None
    work = work_on(p.work, miss.layout)
    memory = peak_bytes(work, miss.layout, jobs[miss.job].cluster, p.eff)
    return Closest(
        job=miss.job,
        need_bytes=miss.need_bytes,
        limit_bytes=miss.limit_bytes,
        usable_bytes=miss.limit_bytes * p.usable_share,
        memory={name: float(v[0]) for name, v in memory.items()},
        layout_row=_with_places(miss.layout, work),
    )


def bests_of(
    asked: Sequence[Asked], together: Together, machines: Machines, found: Sequence[Found]
) -> list[Best]:
    """The winners of each question, in the order of the jobs, with all figures of a plan."""
    none = [(np.empty(0, dtype=np.intp), _no_layouts())]
    jobs = [np.concatenate([j for j, _ in of.winners or none]) for of in found]
    layouts = joined_layouts(
        [
            joined_layouts([lay for _, lay in of.winners or none]).take(
                np.argsort(owner, kind="stable")
            )
            for of, owner in zip(found, jobs, strict=True)
        ]
    )
    jobs = [np.sort(owner) for owner in jobs]
    job = np.concatenate(jobs)
    question = np.repeat(np.arange(len(asked)), [len(owner) for owner in jobs])
    alone, eff = together.at(question)
    clusters = machines.clusters.take(job)
    work = work_on(alone, layouts)
    memory = peak_bytes(work, layouts, clusters, eff)
    need = sum((memory[name] for name in MEMORY_PARTS), np.zeros(len(job)))
    sigma = np.array([a.memory_sigma for a in asked])[question]
    probability = probability_above(
        np.asarray(clusters.memory_bytes), p50=np.maximum(need, 1.0), sigma=sigma
    )
    placed, took = _with_places(layouts, work), step(work, layouts, clusters, eff)
    on_host: Floats = np.zeros(len(job))
    if np.any(np.asarray(layouts.offload_optimizer) > 0):
        on_host = np.asarray(host_bytes(alone, layouts, eff), dtype=float)
    bests = []
    ends = np.cumsum([0, *(len(owner) for owner in jobs)]).tolist()
    for of, owner, begin, end in zip(found, jobs, ends, ends[1:], strict=False):

        def of_question(column: object, rows: slice = slice(begin, end)) -> Floats:
            return np.broadcast_to(np.asarray(column), (len(job),))[rows]

        bests.append(
            Best(
                job=owner,
                asked=np.zeros(len(owner), dtype=np.intp),
                layouts=Layouts(
                    **{f.name: of_question(getattr(placed, f.name)) for f in fields(Layouts)}
                ),
                step=Step(
                    parts={name: of_question(v) for name, v in took.parts.items()},
                    **{
                        f.name: of_question(getattr(took, f.name))
                        for f in fields(Step)
                        if f.name != "parts"
                    },
                ),
                memory={name: of_question(memory[name]) for name in MEMORY_PARTS},
                host_bytes=of_question(on_host),
                probability_oom=of_question(probability),
                counts=counts_in(of.counts),
                counts_of=of.counts,
                removed_of=of.removed,
                jobs_out_of_memory=np.array(sorted(of.misfits), dtype=np.intp),
                jobs_without_layout=np.array(sorted(of.illegal), dtype=np.intp),
                jobs_cut=np.array(sorted(of.cut), dtype=np.intp),
                removed=removed_in(of.removed),
                closest=closest_of(of, machines.jobs),
            )
        )
    return bests


def _no_layouts() -> Layouts:
    return Layouts(**{f.name: np.empty(0) for f in fields(Layouts)})


def _with_places(layouts: Layouts, work: Workload) -> Layouts:
    """The layouts with everything they keep on the host: as searched and as the job sets it."""
    shape = np.shape(layouts.tp)
    return replace(
        layouts,
        offload_optimizer=np.broadcast_to(work.offload_optimizer, shape),
        offload_params=np.broadcast_to(work.offload_params, shape),
    )
