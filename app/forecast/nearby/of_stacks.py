"""The stack of each job: that of the highest throughput after what measured runs say.

A step alone would choose by the model's error too: runs nearby correct it by several percent, and
by another share for each stack.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.forecast import stack_limits
from app.forecast.nearby.moved import Rows
from core.evidence.residual import MOST
from core.scenario import Scenario
from core.search.best import Best, Job, worth
from core.search.columns import joined_layouts
from core.search.job import Question
from core.search.joined_search import Taken, fastest_of
from core.search.plan import Counts

# CUDA graphs that nobody asked for are tried where a stack's fastest step waits this share of its
# time for launches and stragglers, and taken if they are this much faster.
WAITS, GRAPHS_GAIN = 0.03, 1.01
# Of the throughput of a job's fastest layout: a slower one stays behind whatever runs say of both.
# Residuals count as MOST at most (core/evidence/residual.py), and no shift was ever larger: 0.30.
HOPELESS = math.exp(-2 * MOST)

Numbers = NDArray[np.intp]
# By the number of a variant: the jobs that are asked about; and what is found.
Search = Callable[[Mapping[int, Numbers]], Mapping[int, Best]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Winners:
    """The best layouts of one variant."""

    best: Best
    asked: Numbers  # jobs
    rows: Numbers  # of `best`: those of jobs that this variant is asked about
    is_first: bool  # of the variants with its question, which are searched once


def best_of_stacks(
    variants: Sequence[Scenario],
    questions: Sequence[Question],
    jobs: Sequence[Job],
    search: Search,
    shift_of: Callable[[Rows], NDArray[np.float64]],
) -> Best:
    """Each job's best layout of all variants asked about it: the one of most worth when the log of
    its throughput is shifted by `shift_of`."""
    is_open = any(not v.cuda_graphs for v in variants)
    number_of = {v: n for n, v in enumerate(variants)}
    wanted = {
        name: stack_limits.asked_of(variants, name)
        for name in dict.fromkeys(j.accelerator for j in jobs)
    }
    graphs: dict[int, list[int]] = {}  # jobs by variant
    others: dict[int, list[int]] = {}
    for at, job in enumerate(jobs):
        for n in wanted[job.accelerator]:
            some = graphs if is_open and variants[n].cuda_graphs else others
            some.setdefault(n, []).append(at)
    found = _found(others, questions, search)
    without = {n: number_of[variants[n].model_copy(update={"cuda_graphs": False})] for n in graphs}
    waiting = {
        n: [at for at in some if at in waits]
        for n, some in graphs.items()
        for waits in [_waiting(found.get(without[n]))]
    }
    found |= _found({n: some for n, some in waiting.items() if some}, questions, search)
    found = dict(sorted(found.items()))  # of equally fast variants the first wins
    taken = {n: Taken(best=_counted(w), numbers=w.asked, targets=w.asked) for n, w in found.items()}
    worths = _worths(found, len(jobs), shift_of)
    for n in found.keys() & without.keys():
        reached = np.zeros(len(jobs))
        reached[found[without[n]].best.job] = worths[without[n]]
        worths[n][worths[n] <= GRAPHS_GAIN * reached[found[n].best.job]] = 0.0
    return fastest_of(taken, worths, num_jobs=len(jobs))


def _found(
    asked: Mapping[int, list[int]], questions: Sequence[Question], search: Search
) -> dict[int, _Winners]:
    """The best layouts of each variant for its jobs. Variants with one question, as those of
    Megatron-LM and NeMo may have, are searched once."""
    alike: dict[Question, list[int]] = {}
    for n in sorted(asked):
        alike.setdefault(questions[n], []).append(n)
    every = {
        of[0]: np.unique(np.concatenate([np.array(asked[n], dtype=np.intp) for n in of]))
        for of in alike.values()
    }
    found = search(every) if every else {}
    return {
        n: _Winners(
            best=found[of[0]],
            asked=every[of[0]],
            rows=np.flatnonzero(np.isin(found[of[0]].job, asked[n])),
            is_first=n == of[0],
        )
        for of in alike.values()
        for n in of
    }


def _waiting(winners: _Winners | None) -> set[int]:
    """Jobs whose best layout waits for launches and stragglers."""
    if winners is None:
        return set()
    step, rows = winners.best.step, winners.rows
    waits = (step.parts["overhead"] / step.step_s)[rows] >= WAITS
    return set(winners.best.job[rows[waits]].tolist())


def _worths(
    found: Mapping[int, _Winners], num_jobs: int, shift_of: Callable[[Rows], NDArray[np.float64]]
) -> dict[int, NDArray[np.float64]]:
    """What each layout of each variant is worth after the shift; 0 for jobs of other variants and
    where another one is so much faster that no shift makes up for it."""
    worths: dict[int, NDArray[np.float64]] = {}
    most, contenders = np.zeros(num_jobs), np.zeros(num_jobs, dtype=np.intp)
    for n, w in found.items():
        speed, job = w.best.step.tokens_per_s[w.rows], w.best.job[w.rows]
        worths[n] = np.zeros(len(w.best.job))
        worths[n][w.rows] = worth(speed, w.best.probability_oom[w.rows])
        most[job] = np.maximum(most[job], worths[n][w.rows])
    for n, w in found.items():
        worths[n][worths[n] < HOPELESS * most[w.best.job]] = 0.0
        contenders[w.best.job[worths[n] > 0]] += 1
    rows = {
        n: np.flatnonzero((worths[n] > 0) & (contenders[w.best.job] > 1)) for n, w in found.items()
    }
    if not any(len(some) for some in rows.values()):
        return worths
    shift = shift_of(
        Rows(
            job=np.concatenate([w.best.job[rows[n]] for n, w in found.items()]),
            asked=np.repeat(list(found), [len(some) for some in rows.values()]),
            layouts=joined_layouts([w.best.layouts.take(rows[n]) for n, w in found.items()]),
        )
    )
    begin = 0
    for n, some in rows.items():
        end = begin + len(some)
        worths[n][some] *= np.exp(shift[begin:end])
        begin = end
    return worths


def _counted(winners: _Winners) -> Best:
    """The search of a variant; without its candidates, if another variant counts them."""
    best = winners.best
    if winners.is_first:
        return best
    none = {name: np.zeros_like(column) for name, column in best.counts_of.items()}
    return replace(best, counts=Counts(), counts_of=none, removed_of={}, removed=Counter())
