"""Search for the fastest layout that fits, for every machine shape and GPU count at once.

Every legal candidate is either timed or proven not to win: its memory does not fit, it also fits
with less recompute or less on the host (which is never slower), or its bound
(core/search/bounds.py) is above the time of another layout of the job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from core.evidence.uncertainty import probability_above
from core.layout.layouts import Choices, Layouts
from core.layout.workload import Workload
from core.machine.cluster import as_columns as cluster_columns
from core.machine.efficiency import Efficiency
from core.memory.memory import PARTS as MEMORY_PARTS
from core.memory.memory import live_bytes, peak_bytes, reserve_bytes, unwasted_bytes
from core.memory.offload import host_bytes, work_on
from core.numeric import as_float
from core.search.best import (
    Best,
    Closest,
    Floats,
    Ints,
    Job,
    Reached,
    counts_in,
    nothing_reached,
    removed_in,
    usable_share,
)
from core.search.fastest import Problem, chunks, fastest_layouts
from core.search.plan import COUNTED
from core.search.space import Key, Part, Space, spaces
from core.time.step import step


@dataclass(slots=True, kw_only=True)
class _Found:
    """What the search has found so far."""

    num_jobs: int
    counts: dict[str, Ints]  # of each job
    removed: dict[str, Ints]
    misfits: list[int]
    illegal: list[int]
    winners: list[tuple[Ints, Layouts]]
    closest: Closest | None = None


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
    to_beat: Reached | None = None,
) -> Best:
    """The fastest legal layout of every job that surely fits, with a chance of running out of
    memory that a recommended plan may have; where there is none, the fastest that may fit. Of
    equally fast ones the first. A job for which `to_beat` has a layout gets only a better one.

    Candidates depend only on GPU count and node shape, so jobs of one kind share them and their
    bytes. The search ends early, with the small counts done, once it has evaluated `most_rows`
    legal candidates or `stop()` is true, and at once with what `check()` raises; `exhaustive` times
    everything that fits (for tests).
    """
    problem = _problem(work, jobs, eff, choices, memory_sigma, exhaustive, to_beat, check)
    of_key: dict[Key, list[int]] = {}
    for number, job in enumerate(jobs):
        of_key.setdefault(_key(job), []).append(number)
    keys = sorted(of_key, key=lambda k: k.num_gpus)
    found = _Found(
        num_jobs=len(jobs),
        counts={name: np.zeros(len(jobs), dtype=np.intp) for name in COUNTED},
        removed={},
        misfits=[],
        illegal=[],
        winners=[],
    )
    done, rows = 0, 0
    for space in spaces(
        keys,
        model=work.model,
        seq_len=int(np.asarray(work.seq_len)),
        global_batch_size=int(np.asarray(work.global_batch_size)),
        choices=choices,
    ):
        here = [of_key[k] for k in keys[done : done + len(space.parts)]]
        _search(problem, space, here, found)
        done, rows = done + len(space.parts), rows + space.num_rows
        if rows >= most_rows or stop():
            break
    cut = [n for k in keys[done:] for n in of_key[k]]
    return _best(problem, found, cut, memory_sigma)


def _key(job: Job) -> Key:
    per_node = int(np.asarray(job.cluster.gpus_per_node))
    domain = max(int(np.asarray(job.cluster.scale_up_domain)), per_node)
    return Key(num_gpus=job.num_gpus, gpus_per_node=per_node, domain=domain)


def _problem(
    work: Workload,
    jobs: Sequence[Job],
    eff: Efficiency,
    choices: Choices,
    memory_sigma: float,
    exhaustive: bool,
    to_beat: Reached | None,
    check: Callable[[], object],
) -> Problem:
    clusters = cluster_columns([j.cluster for j in jobs])
    # Where activations go to the host, less recompute sends more of them. A host that updates
    # faster than the device, or states that are paged anyway, may gain by offloading.
    device = np.asarray(clusters.memory_bytes_per_s) * eff.memory
    slower_host = (eff.host_bytes_per_s <= device) & (not np.any(work.paged_optimizer))
    return Problem(
        work=work,
        jobs=jobs,
        eff=eff,
        clusters=clusters,
        sure_share=usable_share(memory_sigma, surely=True),
        usable_share=usable_share(memory_sigma, surely=False),
        exhaustive=exhaustive,
        less_recompute_wins=not np.any(work.offloads_activations),
        less_offload_wins=np.broadcast_to(slower_host, (len(jobs),)),
        to_beat=nothing_reached(len(jobs)) if to_beat is None else to_beat,
        check=check,
    )


def _search(p: Problem, space: Space, jobs_of: list[list[int]], found: _Found) -> None:
    """Search the candidates of a few keys; `jobs_of` numbers the jobs of each."""
    live, on_host = _bytes(p, space)
    rows: list[Ints] = []
    owners: list[int] = []
    to_beat: list[float] = []
    for part, numbers in zip(space.parts, jobs_of, strict=True):
        found.counts["candidates"][numbers] = part.num_candidates
        found.counts["cut"][numbers] = part.num_cut
        found.counts["removed"][numbers] = sum(part.removed.values())
        for reason, count in part.removed.items():
            if reason not in found.removed:
                found.removed[reason] = np.zeros(found.num_jobs, dtype=np.intp)
            if count:
                found.removed[reason][numbers] = count
        p.check()
        if not part.num_legal:
            found.illegal += numbers
            continue
        room_of = {number: _room(p, number) for number in numbers}
        known = _surely_or_maybe(
            p, space, part, list(dict.fromkeys(room_of.values())), live, on_host
        )
        least: tuple[Ints, float] | None = None
        missed: set[_Room] = set()
        for number, room in room_of.items():
            kept, num_fit, is_sure = known[room]
            found.counts["pruned_by_memory"][number] = part.num_legal * len(space.kinds) - num_fit
            found.counts["pruned_by_time"][number] = num_fit - len(kept)
            reached = p.to_beat.by(number, is_sure=is_sure)
            if len(kept) and reached < float("inf"):
                rows.append(kept)
                owners.append(number)
                to_beat.append(reached)
            elif not len(kept):
                found.misfits.append(number)
                if room not in missed:  # equal rooms are missed by as much
                    missed.add(room)
                    least = least or _least(space, part, live)
                    _nearer(p, space, number, least, found)
    if rows:
        winners, layouts, timed = fastest_layouts(p, space, rows, owners, np.array(to_beat))
        found.counts["evaluated"][owners] = timed
        found.counts["pruned_by_time"][owners] += np.array([len(r) for r in rows]) - timed
        found.illegal += sorted(set(owners) - set(winners.tolist()))
        found.winners.append((winners, layouts))


def _bytes(p: Problem, space: Space) -> tuple[Floats, ...]:
    """Bytes of every row on any device, and on the host, as recompute modes x families."""
    kinds = len(space.kinds)
    live, on_host = np.empty(space.num_rows), np.zeros(space.num_rows)
    for rows in chunks(np.arange(space.num_rows), p.check):
        lay = space.layouts(rows)
        work = work_on(p.work, lay)
        parts = live_bytes(work, lay, p.eff)
        live[rows] = sum((np.asarray(v, dtype=float) for v in parts.values()), np.zeros(len(rows)))
        live[rows] -= unwasted_bytes(lay, p.eff, parts)
        away = np.flatnonzero(np.asarray(lay.offload_optimizer) > 0)
        if len(away):
            on_host[rows[away]] = host_bytes(p.work, lay.take(away), p.eff)
    return tuple(np.ascontiguousarray(x.reshape(-1, kinds).T) for x in (live, on_host))


@dataclass(frozen=True, slots=True)
class _Room:
    """What of a job decides which rows are worth timing."""

    device_bytes: float
    host_bytes: float
    is_host_slower: bool  # than the device, at updating the weights


def _room(p: Problem, number: int) -> _Room:
    job = p.jobs[number]
    capacity = as_float(job.cluster.memory_bytes)
    return _Room(capacity, float(job.host_bytes), bool(p.less_offload_wins[number]))


def _surely_or_maybe(
    p: Problem, space: Space, part: Part, rooms: list[_Room], live: Floats, on_host: Floats
) -> dict[_Room, tuple[Ints, int, bool]]:
    """By room: the rows worth timing of those that surely fit, or, if none does, of those that may;
    how many there are of that kind; and whether they surely fit."""
    sure = _worth_timing(p, space, part, rooms, live, on_host, p.sure_share)
    found = {room: (*of, True) for room, of in zip(rooms, sure, strict=True)}
    tight = [room for room in rooms if not len(found[room][0])]
    if tight:
        maybe = _worth_timing(p, space, part, tight, live, on_host, p.usable_share)
        found |= {room: (*of, False) for room, of in zip(tight, maybe, strict=True)}
    return found


def _worth_timing(
    p: Problem,
    space: Space,
    part: Part,
    rooms: list[_Room],
    live: Floats,
    on_host: Floats,
    share: float,
) -> list[tuple[Ints, int]]:
    """For each room the rows that fit and are not superseded by a row with less recompute or less
    on the host, and how many fit into that share of the memory. `live` and `on_host` are recompute
    modes x families."""
    kinds = len(space.kinds)
    kept: list[list[Ints]] = [[] for _ in rooms]
    least: list[NDArray[np.int8]] = []  # by level, rooms x families
    num_fit = np.zeros(len(rooms), dtype=np.intp)
    # What is reserved grows with what is live, so that the most that may be live is one number.
    capacity = np.array([r.device_bytes for r in rooms])
    reserved = np.asarray(reserve_bytes(live=0.0, memory_bytes=capacity, eff=p.eff))
    most_live = ((capacity * share - reserved) / (1 + as_float(p.eff.fragmentation)))[:, None]
    host = np.array([[r.host_bytes] for r in rooms])
    slower_host = np.array([[r.is_host_slower] for r in rooms])
    for level, families in enumerate(part.families):
        allowed = part.allowed[level]
        fits = []
        mode = np.full((len(rooms), len(allowed)), kinds, dtype=np.int8)
        for kind in reversed(range(kinds)):
            fit = (live[kind, families] <= most_live) & allowed
            if level:
                fit &= on_host[kind, families] <= host
            mode[fit] = kind
            num_fit += np.count_nonzero(fit, axis=1)
            fits.append(fit)
        if p.exhaustive or not p.less_recompute_wins:
            every = np.stack(fits[::-1], axis=2).reshape(len(rooms), -1)
            for of_room, row in zip(kept, every, strict=True):
                of_room.append(families.start * kinds + np.flatnonzero(row))
            continue
        wins = mode < kinds
        if np.any(slower_host):
            for other, at in zip(least, part.below[level], strict=True):
                if other.shape[1]:
                    wins &= ~slower_host | (at < 0) | (mode < other[:, at])
        for of_room, won, modes in zip(kept, wins, mode, strict=True):
            family = np.flatnonzero(won)
            of_room.append((families.start + family) * kinds + modes[family])
        least.append(mode)
    return [(np.concatenate(k), int(n)) for k, n in zip(kept, num_fit, strict=True)]


def _least(space: Space, part: Part, live: Floats) -> tuple[Ints, float]:
    """The row of a part that takes the fewest bytes of the device, and how many. Offloading has a
    reason of its own, so this is of layouts without it, if there are any."""
    level = next(n for n, a in enumerate(part.allowed) if a.any())
    families, kinds = part.families[level], len(space.kinds)
    held = np.where(part.allowed[level], live[:, families], np.inf)
    kind, family = np.unravel_index(int(np.argmin(held)), held.shape)
    row = (families.start + int(family)) * kinds + int(kind)
    return np.array([row]), float(held[kind, family])


def _nearer(
    p: Problem, space: Space, number: int, least: tuple[Ints, float], found: _Found
) -> None:
    """Remember the candidate of a job that exceeds the memory by least, if it is the nearest
    yet."""
    row, alone = least
    cluster = p.jobs[number].cluster
    capacity = as_float(cluster.memory_bytes)
    need = alone + as_float(reserve_bytes(live=alone, memory_bytes=capacity, eff=p.eff))
    if found.closest is None or need / capacity < found.closest.over:
        lay = space.layouts(row)
        memory = peak_bytes(work_on(p.work, lay), lay, cluster, p.eff)
        found.closest = Closest(
            job=number,
            need_bytes=need,
            limit_bytes=capacity,
            usable_bytes=capacity * p.usable_share,
            memory={name: float(v[0]) for name, v in memory.items()},
            layout_row=_with_places(lay, work_on(p.work, lay)),
        )


def _best(p: Problem, found: _Found, cut: list[int], memory_sigma: float) -> Best:
    """The winners of all parts, in the order of the jobs, with all figures of a plan."""
    owner = np.concatenate([o for o, _ in found.winners] or [np.empty(0, dtype=np.intp)])
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    layouts = Layouts(
        **{
            f.name: np.concatenate(
                [np.asarray(getattr(x, f.name)) for _, x in found.winners] or [np.empty(0)]
            )[order]
            for f in fields(Layouts)
        }
    )
    clusters = p.clusters.take(owner)
    work = work_on(p.work, layouts)
    memory = peak_bytes(work, layouts, clusters, p.eff)
    need = sum((memory[name] for name in MEMORY_PARTS), np.zeros(len(owner)))
    limit = np.asarray(clusters.memory_bytes)
    return Best(
        job=owner,
        asked=np.zeros(len(owner), dtype=np.intp),
        layouts=_with_places(layouts, work),
        step=step(work, layouts, clusters, p.eff),
        memory={name: memory[name] for name in MEMORY_PARTS},
        host_bytes=np.asarray(host_bytes(p.work, layouts, p.eff), dtype=float),
        probability_oom=np.asarray(
            probability_above(limit, p50=np.maximum(need, 1.0), sigma=memory_sigma)
        ),
        counts=counts_in(found.counts),
        counts_of=found.counts,
        removed_of=found.removed,
        jobs_out_of_memory=np.array(sorted(found.misfits), dtype=np.intp),
        jobs_without_layout=np.array(sorted(found.illegal), dtype=np.intp),
        jobs_cut=np.array(sorted(cut), dtype=np.intp),
        removed=removed_in(found.removed),
        closest=found.closest,
    )


def _with_places(layouts: Layouts, work: Workload) -> Layouts:
    """The layouts with everything they keep on the host: as searched and as the job sets it."""
    shape = np.shape(layouts.tp)
    return replace(
        layouts,
        offload_optimizer=np.broadcast_to(work.offload_optimizer, shape),
        offload_params=np.broadcast_to(work.offload_params, shape),
    )
