"""Searches joined from parts of others: the winner of a job does not depend on other jobs.

Results for a machine and a count therefore stay valid while other machines come and go: another
cloud, another way to buy, other accelerators, another deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

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

    def named(of: Sequence[dict[str, Floats]]) -> dict[str, Floats]:
        return {name: column([columns[name] for columns in of]) for name in (of[0] if of else ())}

    found = [b for b, _ in winners]
    return Best(
        job=owner[order],
        layouts=Layouts(
            **{f.name: column([getattr(b.layouts, f.name) for b in found]) for f in fields(Layouts)}
        ),
        step=Step(
            parts=named([b.step.parts for b in found]),
            **{
                f.name: column([getattr(b.step, f.name) for b in found])
                for f in fields(Step)
                if f.name != "parts"
            },
        ),
        memory=named([b.memory for b in found]),
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


def _those(taken: Sequence[Taken], jobs: Sequence[Ints]) -> Ints:
    """The jobs that are among the given ones of their search, in order."""
    found = [t.targets[np.isin(t.numbers, numbers)] for t, numbers in zip(taken, jobs, strict=True)]
    return np.sort(np.concatenate([*found, np.empty(0, dtype=np.intp)]))
