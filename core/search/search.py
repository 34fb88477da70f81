"""Search for the fastest layout that fits, for every machine shape and GPU count at once.

Every legal candidate is either timed or proven not to win: its memory does not fit, it also fits
with less recompute or less on the host (which is never slower), or its bound
(core/search/bounds.py) is above the time of another layout of the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from core.layout.layouts import Choices
from core.layout.workload import Workload
from core.machine.efficiency import Efficiency
from core.memory.counters import unwasted_bytes
from core.memory.memory import live_bytes
from core.memory.offload import HOST_SHARED_BY, host_bytes, work_on
from core.memory.reserve import reserve_of
from core.numeric import as_float
from core.search.asked import Asked, Together, twins
from core.search.best import Best, Job, usable_share
from core.search.columns import Floats, Ints
from core.search.fastest import (
    Heat,
    Machines,
    Problem,
    chunks,
    fastest_layouts,
)
from core.search.fitting import Room, fitting, room_of
from core.search.found import Found, Missed, bests_of
from core.search.space import Key, Space, spaces

ROWS_AT_ONCE = 1_000_000  # legal candidates of several questions that are timed together
UNITS_AT_ONCE = 4_000_000  # machines x units of their spaces, which bounds are made of


def best_layouts(
    work: Workload,
    jobs: Sequence[Job],
    eff: Efficiency,
    choices: Choices,
    *,
    memory_sigma: float,
    most_rows: float = float("inf"),
    stop: Callable[[], bool] = lambda: False,
    check: Callable[[], object] = lambda: None,
    exhaustive: bool = False,
) -> Best:
    """The answer to one question: see `best_of_each`."""
    asked = Asked(
        work=work, eff=eff, choices=choices, memory_sigma=memory_sigma,
        numbers=np.arange(len(jobs)),
    )  # fmt: skip
    (found,) = best_of_each(
        [asked], jobs, most_rows=most_rows, stop=stop, check=check, exhaustive=exhaustive
    )
    return found


def best_of_each(
    asked: Sequence[Asked],
    jobs: Sequence[Job],
    *,
    most_rows: float = float("inf"),
    stop: Callable[[], bool] = lambda: False,
    check: Callable[[], object] = lambda: None,
    exhaustive: bool = False,
) -> list[Best]:
    """For each question, which are all about one model, the fastest legal layout of every job of it
    that surely fits, with a chance of running out of memory that a recommended plan may have; where
    there is none, the fastest that may fit. Of equally fast ones the first.

    Candidates depend only on GPU count and node shape, so jobs of one kind share them and their
    bytes, and questions are timed together. The search of each ends early, with the small counts
    done, once it has evaluated `most_rows` legal candidates or `stop()` is true, and at once with
    what `check()` raises; `exhaustive` times everything that fits (for tests).
    """
    machines, together = Machines.of(jobs), Together.of(asked)
    keys = [_key(job) for job in jobs]
    found = [Found.nothing(_problem(a, machines), len(jobs)) for a in asked]
    heats: list[Heat] = []
    num_rows, num_units = 0, 0

    def time_them() -> None:
        finishes = fastest_layouts(heats, together, machines, exhaustive=exhaustive, check=check)
        for heat, finish in zip(heats, finishes, strict=True):
            of = found[heat.question]
            of.num_timed[heat.jobs] = finish.num_timed
            of.without += set(heat.jobs) - set(finish.winners.tolist())
            of.winners.append((finish.winners, finish.layouts))
        heats.clear()

    for n, alike in twins(asked).items():
        of = found[n]
        for space, jobs_of in _spaces(asked[n], keys, of, most_rows, stop):
            heat = _heat(n, of, machines, space, jobs_of, exhaustive=exhaustive, check=check)
            if not heat.jobs:
                continue
            questions = (n, *alike)
            heats += [replace(heat, question=question) for question in questions]
            num_rows += space.num_rows * len(questions)
            units = machines.num_distinct * space.num_unit_codes * len(space.kinds)
            num_units += units * len(questions)
            if num_rows >= ROWS_AT_ONCE or num_units >= UNITS_AT_ONCE:
                time_them()
                num_rows, num_units = 0, 0
        for question in alike:
            found[question].take_over(of)
    if heats:
        time_them()
    for of in found:
        of.timed()
    return bests_of(asked, together, machines, found)


def _spaces(
    asked: Asked, keys: list[Key], found: Found, most_rows: float, stop: Callable[[], bool]
) -> Iterator[tuple[Space, list[list[int]]]]:
    """The spaces of a question, each with the jobs of its parts, until the search ends."""
    of_key: dict[Key, list[int]] = {}
    for number in asked.numbers.tolist():
        of_key.setdefault(keys[number], []).append(number)
    in_order = sorted(of_key, key=lambda k: k.num_gpus)
    done, rows = 0, 0
    for space in spaces(
        in_order,
        model=asked.work.model,
        seq_len=int(np.asarray(asked.work.seq_len)),
        global_batch_size=int(np.asarray(asked.work.global_batch_size)),
        choices=asked.choices,
    ):
        yield space, [of_key[k] for k in in_order[done : done + len(space.parts)]]
        done, rows = done + len(space.parts), rows + space.num_rows
        if rows >= most_rows or stop():
            break
    found.cut = [n for k in in_order[done:] for n in of_key[k]]


def _key(job: Job) -> Key:
    per_node = int(np.asarray(job.cluster.gpus_per_node))
    domain = max(int(np.asarray(job.cluster.scale_up_domain)), per_node)
    return Key(num_gpus=job.num_gpus, gpus_per_node=per_node, domain=domain)


def _problem(asked: Asked, machines: Machines) -> Problem:
    # Where activations go to the host, less recompute sends more of them. A host that updates
    # faster than the device, or states that are paged anyway, may gain by offloading.
    work, eff = asked.work, asked.eff
    device = np.asarray(machines.clusters.memory_bytes_per_s) * eff.memory
    slower_host = (eff.host_bytes_per_s * HOST_SHARED_BY <= device) & (
        not np.any(work.paged_optimizer)
    )
    return Problem(
        work=work,
        eff=eff,
        sure_share=usable_share(asked.memory_sigma, surely=True),
        usable_share=usable_share(asked.memory_sigma, surely=False),
        less_recompute_wins=not np.any(work.offloads_activations),
        less_offload_wins=np.broadcast_to(slower_host, (len(machines.jobs),)),
    )


def _heat(
    question: int,
    found: Found,
    machines: Machines,
    space: Space,
    jobs_of: list[list[int]],
    *,
    exhaustive: bool,
    check: Callable[[], object],
) -> Heat:
    """The candidates of a few keys that have to be timed; `jobs_of` numbers the jobs of each."""
    p = found.problem
    live, on_host = _bytes(p, space, check)
    numbers = np.array([n for some in jobs_of for n in some], dtype=np.intp)
    part_of = np.repeat(np.arange(len(jobs_of)), [len(some) for some in jobs_of])
    parts = space.parts
    found.counts["candidates"][numbers] = parts.num_candidates[part_of]
    found.counts["cut"][numbers] = parts.num_cut[part_of]
    found.counts["removed"][numbers] = np.sum(list(parts.removed.values()), axis=0)[part_of]
    for reason, count in parts.removed.items():
        if reason not in found.removed:
            found.removed[reason] = np.zeros(len(machines.jobs), dtype=np.intp)
        found.removed[reason][numbers] = count[part_of]
    asked: dict[tuple[int, Room], list[int]] = {}  # jobs by part and room
    for at, number in zip(part_of.tolist(), numbers.tolist(), strict=True):
        if not parts.num_legal[at]:
            found.illegal.append(number)
            continue
        room = room_of(machines.jobs[number], is_host_slower=p.less_offload_wins[number])
        asked.setdefault((at, room), []).append(number)
    known = fitting(p, space, list(asked), live, on_host, all_modes=exhaustive, check=check)
    heat = Heat(question=question, space=space, rows=[], jobs=[])
    least: dict[int, tuple[Ints, float]] = {}  # by part
    for ((at, _), some), of in zip(asked.items(), known, strict=True):
        legal = int(parts.num_legal[at]) * len(space.kinds)
        found.counts["pruned_by_memory"][some] = legal - of.num_fit
        found.counts["pruned_by_time"][some] = of.num_fit
        if len(of.rows):
            heat.rows.extend([of.rows] * len(some))
            heat.jobs.extend(some)
            continue
        found.misfits += some
        if at not in least:
            least[at] = _least(space, at, live)
        _nearer(machines.jobs, space, some[0], least[at], found)
    return heat


def _bytes(p: Problem, space: Space, check: Callable[[], object]) -> tuple[Floats, ...]:
    """Bytes of every row on any device, and on the host, as recompute modes x families. Most bytes
    are those of a family, whatever it recomputes: modes are an axis of their own."""
    kinds = np.array(space.kinds, dtype=float)
    live, on_host = (np.zeros((len(kinds), len(space.cell))) for _ in range(2))
    for families in chunks(np.arange(len(space.cell)), check, len(kinds)):
        lay = space.layouts(families * len(kinds))
        of_mode = replace(lay, recompute=kinds[:, None])
        parts = live_bytes(work_on(p.work, lay), of_mode, p.eff)
        all_of = sum((np.asarray(v, dtype=float) for v in parts.values()), np.zeros(()))
        live[:, families] = all_of - unwasted_bytes(of_mode, p.eff, parts)
        away = np.flatnonzero(np.asarray(lay.offload_optimizer) > 0)
        if len(away):
            of_mode = replace(lay.take(away), recompute=kinds[:, None])
            on_host[:, families[away]] = host_bytes(p.work, of_mode, p.eff)
    return live, on_host


def _least(space: Space, part: int, live: Floats) -> tuple[Ints, float]:
    """The row of a part that takes the fewest bytes of the device, and how many. Offloading has a
    reason of its own, so this is of layouts without it, if there are any."""
    parts, kinds = space.parts, len(space.kinds)
    for begins, ends in zip(parts.begins, parts.ends, strict=True):
        some = slice(begins[part], ends[part])
        allowed = parts.allowed[part, space.axis[some]]
        if allowed.any():
            break
    held = np.where(allowed, live[:, some], np.inf)
    kind, family = np.unravel_index(int(np.argmin(held)), held.shape)
    row = (int(some.start) + int(family)) * kinds + int(kind)
    return np.array([row]), float(held[kind, family])


def _nearer(
    jobs: Sequence[Job], space: Space, number: int, least: tuple[Ints, float], found: Found
) -> None:
    """Remember the candidate of a job that exceeds the memory by least, if it is the nearest
    yet."""
    row, alone = least
    capacity = as_float(jobs[number].cluster.memory_bytes)
    eff = found.problem.eff
    need = alone + as_float(reserve_of(jobs[number].cluster, eff, live=alone))
    if found.nearest is None or need / capacity < found.nearest.over:
        lay = space.layouts(row)
        found.nearest = Missed(job=number, need_bytes=need, limit_bytes=capacity, layout=lay)
