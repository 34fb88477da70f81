"""The fastest layout of each job: every layout is timed, or its bound exceeds another's time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.cluster import as_columns as cluster_columns
from core.machine.efficiency import Efficiency
from core.memory.offload import least_host_s, work_on
from core.numeric import as_float
from core.search.best import Floats, Ints, Job, Reached
from core.search.bounds import Pipeline, Unit, least_step_s, pipeline, straggling, unit
from core.search.space import Space
from core.time.step import step

CHUNK_ROWS = 64_000  # columns of them stay in the processor's cache
TIMED_FIRST = (8, 64)  # rows of a job with the lowest bounds: the fastest prunes the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Inputs that do not change during one search."""

    work: Workload
    jobs: Sequence[Job]
    eff: Efficiency
    clusters: Cluster  # the clusters of the jobs, as columns
    sure_share: float  # of the memory that a layout may need so that it surely fits
    usable_share: float  # so that it may fit
    exhaustive: bool  # time whatever fits
    less_recompute_wins: bool
    less_offload_wins: NDArray[np.bool_]  # by job
    to_beat: Reached  # by other questions
    check: Callable[[], object]  # called before each chunk: what it raises ends the search


def fastest_layouts(
    p: Problem, space: Space, rows: list[Ints], owners: list[int], to_beat: Floats
) -> tuple[Ints, Layouts, Ints]:
    """The jobs that have a winner, in order, with the fastest layout of each; and how many rows of
    each of the `owners` were timed. `rows` are in the order of the space: of equally fast ones the
    first wins. `to_beat`: tokens/s that each of the owners has to beat, 0 for nothing. A layout
    without a finite time (precision not supported) never wins, nor does one that is not faster."""
    starts = np.cumsum([0, *(len(r) for r in rows)])
    row, owner = np.concatenate(rows), np.repeat(owners, np.diff(starts))
    speed = np.full(len(row), -np.inf)
    of_row = np.repeat(to_beat, np.diff(starts))

    def run(which: Ints) -> None:
        for at in chunks(which, p.check):
            lay = space.layouts(row[at])
            result = step(work_on(p.work, lay), lay, p.clusters.take(owner[at]), p.eff)
            finite = np.isfinite(result.tokens_per_s)
            speed[at] = np.where(finite, result.tokens_per_s, -np.inf)

    if p.exhaustive:
        timed = np.ones(len(row), dtype=bool)
        run(np.arange(len(row)))
    else:
        bound = _bounds(p, space, row, owner)
        timed = np.zeros(len(row), dtype=bool)
        tokens = float(np.asarray(p.work.global_batch_size) * np.asarray(p.work.seq_len))
        beaten = tokens / np.where(of_row > 0, of_row, 1.0)
        left = np.flatnonzero(~((of_row > 0) & (bound >= beaten)))
        for some in TIMED_FIRST:
            now = left[_least_of_each(owner[left], bound[left], some)]
            run(now)
            timed[now] = True
            fastest = np.maximum(np.maximum.reduceat(speed, starts[:-1]), to_beat)
            best = np.repeat(fastest, np.diff(starts))
            reached = np.where(best > 0, tokens / np.maximum(best, 1e-300), np.inf)
            left = np.flatnonzero(~timed & ~(bound > reached))
        run(left)
        timed[left] = True
    best = np.repeat(np.maximum.reduceat(speed, starts[:-1]), np.diff(starts))
    first = np.flatnonzero((speed == best) & (speed > of_row))
    winners = first[np.diff(owner[first], prepend=-1) != 0]
    num_timed = np.add.reduceat(timed.astype(np.intp), starts[:-1])
    return owner[winners], space.layouts(row[winners]), num_timed


def _least_of_each(owner: Ints, score: Floats, some: int) -> Ints:
    """Row numbers of the `some` lowest scores of each owner; owners are in order."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    ends = np.append(starts, len(owner))[1:]
    return np.concatenate(
        [
            begin + np.argpartition(score[begin:end], min(some, end - begin) - 1)[:some]
            for begin, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        or [np.empty(0, dtype=np.intp)]
    )


def _bounds(p: Problem, space: Space, row: Ints, owner: Ints) -> Floats:
    """Lower bound of the seconds of each row."""
    kinds = len(space.kinds)
    family, kind = np.divmod(row, kinds)
    cell = space.cell[family]
    code = space.unit_codes[cell] * kinds + kind
    num_codes = int(space.unit_codes.max()) * kinds + kinds
    machines, machine_of = _machines(p.jobs)
    machine = machine_of[owner]
    pair = machine.astype(np.int64) * num_codes + code
    used = np.zeros(len(machines) * num_codes, dtype=bool)
    used[pair] = True
    pairs = np.flatnonzero(used)
    example = np.zeros(len(used), dtype=np.intp)  # one row of each pair
    example[pair] = np.arange(len(row))
    layer_s, head_s = np.zeros(len(used)), np.zeros(len(used))
    columns = cluster_columns(machines)
    for at in chunks(pairs, p.check):
        one = unit(p.work, space.layouts(row[example[at]]), columns.take(at // num_codes), p.eff)
        layer_s[at], head_s[at] = one.layer_s, one.head_s
    of = pipeline(p.work, space.cell_layouts())
    bound, host_s = np.empty(len(row)), np.zeros(len(row))
    # Seconds of the host are per family: recompute does not change them.
    away, number = np.unique(family[space.level[family] > 0], return_inverse=True)
    if len(away):
        of_family = np.empty(len(away))
        for at in chunks(np.arange(len(away)), p.check):
            of_family[at] = least_host_s(p.work, space.layouts(away[at] * kinds), p.eff)
        host_s[space.level[family] > 0] = of_family[number]
    factor = np.broadcast_to(
        straggling(p.clusters, np.array([j.num_gpus for j in p.jobs]), p.eff), (len(p.jobs),)
    )
    num_layers = as_float(p.work.model.num_layers)
    for at in chunks(np.arange(len(row)), p.check):
        c, k = cell[at], pair[at]
        bound[at] = least_step_s(
            Unit(layer_s=layer_s[k], head_s=head_s[k]),
            Pipeline(
                microbatches=of.microbatches[c], layers=of.layers[c], fewer=of.fewer[c],
                waiting=of.waiting[c],
            ),
            num_layers=num_layers,
            host_s=host_s[at],
            factor=factor[owner[at]],
            step_s=as_float(p.eff.step_s),
        )  # fmt: skip
    return bound


def _machines(jobs: Sequence[Job]) -> tuple[list[Cluster], Ints]:
    """The distinct machines of the jobs, and the index of each job's machine."""
    number: dict[Cluster, int] = {}
    of = [number.setdefault(j.cluster, len(number)) for j in jobs]
    return list(number), np.array(of, dtype=np.intp)


def chunks(rows: Ints, check: Callable[[], object]) -> Iterator[Ints]:
    for start in range(0, len(rows), CHUNK_ROWS):
        check()
        yield rows[start : start + CHUNK_ROWS]
