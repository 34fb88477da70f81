"""Searches joined from others: of other jobs, or of other questions about the same jobs.

The winner of a job does not depend on other jobs. Results for a machine and a count therefore stay
valid while other machines come and go: another cloud, another way to buy, other accelerators,
another deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from core.layout.layouts import Layouts
from core.search.best import Best, Floats, Ints, counts_in, removed_in
from core.search.plan import COUNTED
from core.time.step import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Jobs of one search that are used in another: their numbers in both."""

    best: Best
    numbers: Ints
    targets: Ints


def joined(taken: Sequence[Taken], *, num_jobs: int) -> Best:
    """The search of `num_jobs` jobs, each from one of the parts. The nearest miss is left out
    (`closest` is None): it is known for a whole search only."""
    counts = {name: np.zeros(num_jobs, dtype=np.intp) for name in COUNTED}
    removed: dict[str, Ints] = {}
    winners: list[tuple[Best, Ints]] = []
    owners: list[Ints] = []
    for t in taken:
        row_of = np.full(len(t.best.counts_of["candidates"]), -1, dtype=np.intp)
        row_of[t.best.job] = np.arange(len(t.best.job))
        rows = row_of[t.numbers]
        if (rows >= 0).any():
            winners.append((t.best, rows[rows >= 0]))
            owners.append(t.targets[rows >= 0])
        for name, of_job in t.best.counts_of.items():
            counts[name][t.targets] = of_job[t.numbers]
        for reason, of_job in t.best.removed_of.items():
            here = removed.setdefault(reason, np.zeros(num_jobs, dtype=np.intp))
            here[t.targets] = of_job[t.numbers]
    owner = np.concatenate([*owners, np.empty(0, dtype=np.intp)])
    order = np.argsort(owner, kind="stable")

    def column(values: Sequence[object]) -> Floats:
        """The rows of the winners in one column, given by part."""
        rows = [
            np.broadcast_to(np.asarray(v), (len(b.job),))[r]
            for v, (b, r) in zip(values, winners, strict=True)
        ]
        return np.concatenate([*rows, np.empty(0)])[order]

    def named(part: Callable[[Best], dict[str, Floats]]) -> dict[str, Floats]:
        names = part(taken[0].best)
        return {name: column([part(b)[name] for b in found]) for name in names}

    found = [b for b, _ in winners]
    return Best(
        job=owner[order],
        asked=column([b.asked for b in found]).astype(np.intp),
        layouts=Layouts(
            **{f.name: column([getattr(b.layouts, f.name) for b in found]) for f in fields(Layouts)}
        ),
        step=Step(
            parts=named(lambda b: b.step.parts),
            **{
                f.name: column([getattr(b.step, f.name) for b in found])
                for f in fields(Step)
                if f.name != "parts"
            },
        ),
        memory=named(lambda b: b.memory),
        host_bytes=column([b.host_bytes for b in found]),
        probability_oom=column([b.probability_oom for b in found]),
        counts=counts_in(counts),
        counts_of=counts,
        removed_of=removed,
        jobs_out_of_memory=_those(taken, [t.best.jobs_out_of_memory for t in taken]),
        jobs_without_layout=_those(taken, [t.best.jobs_without_layout for t in taken]),
        jobs_cut=_those(taken, [t.best.jobs_cut for t in taken]),
        removed=removed_in(removed),
    )


def fastest_of(asked: Mapping[int, Taken], worth: Mapping[int, Floats], *, num_jobs: int) -> Best:
    """The search of jobs about which several questions were asked, by the number of the question:
    of each job the winner of most worth, of equal ones the first. `worth`: of each winner of a
    question, 0 where it is not taken. Candidates are counted for every question; a job without a
    winner is out of memory if that holds for one question."""
    every = list(asked.values())
    speed = np.zeros((len(every), num_jobs))
    for n, (number, t) in enumerate(asked.items()):
        target_of = np.full(len(t.best.counts_of["candidates"]), -1, dtype=np.intp)
        target_of[t.numbers] = t.targets
        speed[n, target_of[t.best.job]] = worth[number]
    won = np.where(speed.max(axis=0) > 0, speed.argmax(axis=0), -1)
    parts = []
    for n, (number, t) in enumerate(asked.items()):
        mine = won[t.targets] == n
        best = replace(t.best, asked=np.full(len(t.best.job), number, dtype=np.intp))
        parts.append(Taken(best=best, numbers=t.numbers[mine], targets=t.targets[mine]))
    whole = joined(parts, num_jobs=num_jobs)
    counts = {name: np.zeros(num_jobs, dtype=np.intp) for name in COUNTED}
    removed: dict[str, Ints] = {}
    for t in every:
        for name, of_job in t.best.counts_of.items():
            counts[name][t.targets] += of_job[t.numbers]
        for reason, of_job in t.best.removed_of.items():
            here = removed.setdefault(reason, np.zeros(num_jobs, dtype=np.intp))
            here[t.targets] += of_job[t.numbers]
    lost = np.flatnonzero(won < 0)
    misfits = np.intersect1d(lost, _those(every, [t.best.jobs_out_of_memory for t in every]))
    illegal = np.intersect1d(lost, _those(every, [t.best.jobs_without_layout for t in every]))
    missed = [
        replace(c, asked=number, job=int(t.targets[t.numbers == c.job][0]))
        for number, t in asked.items()
        if (c := t.best.closest) is not None
    ]
    return replace(
        whole,
        counts=counts_in(counts),
        counts_of=counts,
        removed_of=removed,
        removed=removed_in(removed),
        jobs_cut=np.unique(_those(every, [t.best.jobs_cut for t in every])),
        closest=min(missed, key=lambda c: c.over, default=None),
        jobs_out_of_memory=misfits,
        jobs_without_layout=np.setdiff1d(illegal, misfits),
    )


def _those(taken: Sequence[Taken], jobs: Sequence[Ints]) -> Ints:
    """The jobs that are among the given ones of their search, in order."""
    found = [t.targets[np.isin(t.numbers, numbers)] for t, numbers in zip(taken, jobs, strict=True)]
    return np.sort(np.concatenate([*found, np.empty(0, dtype=np.intp)]))
