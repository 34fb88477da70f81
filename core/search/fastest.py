"""The fastest layout of each job: every layout is timed, or its bound exceeds another's time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import Layouts
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.cluster import as_columns as cluster_columns
from core.machine.efficiency import Efficiency
from core.memory.offload import least_host_s, work_on
from core.numeric import as_float
from core.search.asked import Together
from core.search.best import Job
from core.search.bounds import Pipeline, Unit, least_step_s, pipeline, straggling, unit
from core.search.columns import Floats, Ints, joined_layouts
from core.search.space import Space
from core.time.step import step

CHUNK_ROWS = 24_000  # columns of them stay in the cache of a core, which holds 1 to 2 MiB
TIMED_FIRST = (4, 32, 256)  # rows of a job with the lowest bounds: the fastest prunes the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Inputs of one question that do not change during a search."""

    work: Workload
    eff: Efficiency
    sure_share: float  # of the memory that a layout may need so that it surely fits
    usable_share: float  # so that it may fit
    less_recompute_wins: bool
    less_offload_wins: NDArray[np.bool_]  # by job


@dataclass(frozen=True, slots=True, kw_only=True)
class Machines:
    """The jobs of a search."""

    jobs: Sequence[Job]
    clusters: Cluster  # of the jobs, as columns
    number: Ints  # of the machine of each job
    distinct: Cluster  # the machines, as columns
    num_distinct: int

    @classmethod
    def of(cls, jobs: Sequence[Job]) -> Machines:
        """Those of some jobs."""
        numbers: dict[Cluster, int] = {}
        number = np.array(
            [numbers.setdefault(j.cluster, len(numbers)) for j in jobs], dtype=np.intp
        )
        distinct = cluster_columns(list(numbers))
        return cls(
            jobs=jobs,
            clusters=distinct.take(number),
            number=number,
            distinct=distinct,
            num_distinct=len(numbers),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Rows of a space that are worth timing for jobs of one question, in the order of the space."""

    question: int
    space: Space
    rows: list[Ints]  # of each job
    jobs: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """What came of a heat: the jobs that have a winner, in order, and the fastest layout of each;
    and how many rows of each job of the heat were timed."""

    winners: Ints
    layouts: Layouts
    num_timed: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """The rows of several heats, one after the other."""

    heats: Sequence[Heat]
    together: Together
    machines: Machines
    row: Ints  # of its space
    begins: Ints  # of each heat, and the end
    starts: Ints  # of each job of each heat
    job: Ints  # of each row
    heat: Ints

    @classmethod
    def of(cls, heats: Sequence[Heat], together: Together, machines: Machines) -> _Field:
        lengths = np.array([len(r) for h in heats for r in h.rows], dtype=np.intp)
        num_rows = [sum(len(r) for r in h.rows) for h in heats]
        return cls(
            heats=heats,
            together=together,
            machines=machines,
            row=np.concatenate([r for h in heats for r in h.rows]),
            begins=np.cumsum([0, *num_rows]),
            starts=np.cumsum(lengths) - lengths,
            job=np.repeat(np.array([n for h in heats for n in h.jobs], dtype=np.intp), lengths),
            heat=np.repeat(np.arange(len(heats)), num_rows),
        )

    def parts(self, at: Ints) -> Iterator[tuple[Heat, slice]]:
        """Each heat that some of these rows, which are in order of heats, are of; and which."""
        ends = np.searchsorted(self.heat[at], np.arange(len(self.heats) + 1)).tolist()
        for heat, begin, end in zip(self.heats, ends, ends[1:], strict=False):
            if end > begin:
                yield heat, slice(begin, end)

    def layouts(self, at: Ints) -> Layouts:
        """The layouts of rows, which are in order of heats."""
        return joined_layouts(
            [heat.space.layouts(self.row[at[some]]) for heat, some in self.parts(at)]
        )

    def works(self, at: Ints) -> tuple[Workload, Efficiency]:
        """What rows train, with what software."""
        question = np.array([h.question for h in self.heats], dtype=np.intp)
        return self.together.at(question[self.heat[at]])


def fastest_layouts(
    heats: Sequence[Heat],
    together: Together,
    machines: Machines,
    *,
    exhaustive: bool,
    check: Callable[[], object],
) -> list[Finish]:
    """The fastest layout of each job of each heat; of equally fast ones the first. A layout
    without a finite time (precision not supported) never wins. `exhaustive`: all are timed.
    `check` is called before each chunk: what it raises ends the search."""
    of = _Field.of(heats, together, machines)
    speed = np.full(len(of.row), -np.inf)
    lengths = np.diff(of.starts, append=len(of.row))

    def run(which: Ints) -> None:
        for at in chunks(which, check):
            lay = of.layouts(at)
            work, eff = of.works(at)
            result = step(work_on(work, lay), lay, machines.clusters.take(of.job[at]), eff)
            finite = np.isfinite(result.tokens_per_s)
            speed[at] = np.where(finite, result.tokens_per_s, -np.inf)

    timed = np.zeros(len(of.row), dtype=bool)
    left = np.arange(len(of.row))
    if not exhaustive:
        bound = _bounds(of, check)
        work = together.asked[0].work
        tokens = float(np.asarray(work.global_batch_size) * np.asarray(work.seq_len))
        block = np.repeat(np.arange(len(lengths)), lengths)
        for some in TIMED_FIRST:
            now = left[_least_of_each(block[left], bound[left], some)]
            run(now)
            timed[now] = True
            best = np.maximum.reduceat(speed, of.starts)
            reached = np.where(best > 0, tokens / np.maximum(best, 1e-300), np.inf)
            left = left[~timed[left] & ~(bound[left] > reached[block[left]])]
    run(left)
    timed[left] = True
    best = np.repeat(np.maximum.reduceat(speed, of.starts), lengths)
    fastest = np.flatnonzero((speed == best) & (speed > 0))
    block = np.searchsorted(of.starts, fastest, side="right")
    winners = fastest[np.diff(block, prepend=-1) != 0]
    num_timed = np.add.reduceat(timed.astype(np.intp), of.starts)
    ends = np.cumsum([0, *(len(h.jobs) for h in heats)]).tolist()
    found = []
    for heat, first, last, begin, end in zip(
        heats, ends, ends[1:], of.begins, of.begins[1:], strict=False
    ):
        won = winners[(winners >= begin) & (winners < end)]
        found.append(
            Finish(
                winners=of.job[won],
                layouts=heat.space.layouts(of.row[won]),
                num_timed=num_timed[first:last],
            )
        )
    return found


def _least_of_each(owner: Ints, score: Floats, some: int) -> Ints:
    """Row numbers of the `some` lowest scores of each owner; owners are in order."""
    num_owners = int(owner[-1]) + 1 if len(owner) else 0
    starts = np.searchsorted(owner, np.arange(num_owners + 1)).tolist()
    return np.concatenate(
        [
            begin + np.argpartition(score[begin:end], min(some, end - begin) - 1)[:some]
            for begin, end in pairwise(starts)
            if end > begin
        ]
        or [np.empty(0, dtype=np.intp)]
    )


def _bounds(of: _Field, check: Callable[[], object]) -> Floats:
    """Lower bound of the seconds of each row."""
    layer_s, head_s = _units(of, check)
    host_s = _least_host_s(of, check)
    bound = np.empty(len(of.row))
    num_gpus = np.array([j.num_gpus for j in of.machines.jobs], dtype=float)
    for n, heat in enumerate(of.heats):
        asked = of.together.asked[heat.question]
        all_of = pipeline(asked.work, heat.space.cell_layouts())
        factor = np.broadcast_to(
            straggling(of.machines.clusters, num_gpus, asked.eff), (len(num_gpus),)
        )
        for at in chunks(np.arange(of.begins[n], of.begins[n + 1]), check):
            cell = heat.space.cell[of.row[at] // len(heat.space.kinds)]
            bound[at] = least_step_s(
                Unit(layer_s=layer_s[at], head_s=head_s[at]),
                Pipeline(
                    microbatches=all_of.microbatches[cell], layers=all_of.layers[cell],
                    fewer=all_of.fewer[cell], waiting=all_of.waiting[cell],
                ),
                num_layers=as_float(asked.work.model.num_layers),
                host_s=host_s[at],
                factor=factor[of.job[at]],
                step_s=as_float(asked.eff.step_s),
            )  # fmt: skip
    return bound


def _units(of: _Field, check: Callable[[], object]) -> tuple[Floats, Floats]:
    """Seconds of the unit of each row: of a layer, and of the LM head."""
    machine = of.machines.number[of.job]
    code = np.empty(len(of.row), dtype=np.int64)
    first = 0
    for n, heat in enumerate(of.heats):
        here, kinds = slice(of.begins[n], of.begins[n + 1]), len(heat.space.kinds)
        family = of.row[here] // kinds
        kind = of.row[here] - family * kinds  # twice as fast as divmod
        codes = heat.space.num_unit_codes * kinds
        one = heat.space.unit_codes[heat.space.cell[family]] * kinds + kind
        code[here] = first + machine[here] * codes + one
        first += of.machines.num_distinct * codes
    rows, place = _examples(code, first)
    layer_s, head_s = np.empty(len(rows)), np.empty(len(rows))
    for some in chunks(np.arange(len(rows)), check):
        at = rows[some]
        work, eff = of.works(at)
        one_s = unit(work, of.layouts(at), of.machines.distinct.take(machine[at]), eff)
        layer_s[some], head_s[some] = one_s.layer_s, one_s.head_s
    return layer_s[place], head_s[place]


def _least_host_s(of: _Field, check: Callable[[], object]) -> Floats:
    """Least seconds of the host of each row, which recompute does not change."""
    found = np.zeros(len(of.row))
    away, code, first = [], [], 0
    for n, heat in enumerate(of.heats):
        family = of.row[of.begins[n] : of.begins[n + 1]] // len(heat.space.kinds)
        on_host = np.flatnonzero(heat.space.level[family] > 0)
        away.append(of.begins[n] + on_host)
        code.append(first + family[on_host])
        first += len(heat.space.cell)
    at = np.concatenate(away)
    if not len(at):
        return found
    rows, place = _examples(np.concatenate(code), first)
    of_family = np.empty(len(rows))
    for some in chunks(np.arange(len(rows)), check):
        work, eff = of.works(at[rows[some]])
        of_family[some] = least_host_s(work, of.layouts(at[rows[some]]), eff)
    found[at] = of_family[place]
    return found


def _examples(code: Ints, num: int) -> tuple[Ints, Ints]:
    """One row of each code there is, in the order of the codes, and which of them each row has.

    >>> [found.tolist() for found in _examples(np.array([4, 1, 4]), 6)]
    [[1, 2], [1, 0, 1]]
    """
    example = np.full(num, -1, dtype=np.intp)
    example[code] = np.arange(len(code))
    used = np.flatnonzero(example >= 0)
    place = np.empty(num, dtype=np.intp)
    place[used] = np.arange(len(used))
    return example[used], place[code]


def chunks(rows: Ints, check: Callable[[], object], of_row: int = 1) -> Iterator[Ints]:
    """Some of the rows after the other, of which each stands for `of_row`; `check` is called before
    each."""
    at_once = CHUNK_ROWS // of_row
    for start in range(0, len(rows), at_once):
        check()
        yield rows[start : start + at_once]
