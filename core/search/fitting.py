"""Which rows of a space fit the memory of a job, and are worth timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.memory.reserve import reserve_bytes
from core.numeric import as_float
from core.search.best import Job
from core.search.columns import Floats, Ints
from core.search.fastest import Problem
from core.search.space import Space

CELLS_AT_ONCE = 1_000_000  # families of all parts and rooms that are looked at together


@dataclass(frozen=True, slots=True)
class Room:
    """What of a job decides which rows are worth timing."""

    device_bytes: float
    pooled: float  # whether software takes a pool of them when it starts
    host_bytes: float
    is_host_slower: bool  # than the device, at updating the weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """The rows of a part worth timing in one room: of those that surely fit or, if none does, of
    those that may."""

    rows: Ints
    num_fit: int  # rows of that kind, with those that are superseded
    is_sure: bool


@dataclass(frozen=True, slots=True)
class _Bytes:
    """What rows take, as recompute modes x families."""

    live: Floats
    on_host: Floats
    least_live: Floats  # of each family, over its modes


def room_of(job: Job, *, is_host_slower: bool) -> Room:
    """The room of a job."""
    capacity = as_float(job.cluster.memory_bytes)
    pooled = as_float(job.cluster.pools_memory)
    return Room(capacity, pooled, float(job.host_bytes), bool(is_host_slower))


def fitting(
    p: Problem,
    space: Space,
    asked: Sequence[tuple[int, Room]],
    live: Floats,
    on_host: Floats,
    *,
    all_modes: bool,
    check: Callable[[], object],
) -> list[Fitting]:
    """What fits of each part in a room. `live` and `on_host`: bytes, recompute modes x families.
    `all_modes`: with rows that are superseded. `check` is called now and then: what it raises ends
    the search."""
    every = all_modes or not p.less_recompute_wins
    held = _Bytes(live, on_host, live.min(axis=0))

    def worth_timing(some: Sequence[tuple[int, Room]], share: float) -> list[tuple[Ints, int]]:
        found: list[tuple[Ints, int]] = []
        for together in _together(space, some):
            check()
            found += _worth_timing(p, space, together, held, share, every=every)
        return found

    sure = worth_timing(asked, p.sure_share)
    found = [Fitting(rows=rows, num_fit=num, is_sure=True) for rows, num in sure]
    tight = [n for n, of in enumerate(found) if not len(of.rows)]
    maybe = worth_timing([asked[n] for n in tight], p.usable_share)
    for n, (rows, num) in zip(tight, maybe, strict=True):
        found[n] = Fitting(rows=rows, num_fit=num, is_sure=False)
    return found


def _together(space: Space, asked: Sequence[tuple[int, Room]]) -> Iterator[list[tuple[int, Room]]]:
    """Parts in rooms, as many at a time as are looked at together."""
    pairs = zip(space.parts.begins, space.parts.ends, strict=True)
    num_families = sum((e - b for b, e in pairs), np.zeros(len(space.parts), dtype=np.intp))
    some: list[tuple[int, Room]] = []
    cells = 0
    for part, room in asked:
        here = int(num_families[part])
        if some and cells + here > CELLS_AT_ONCE:
            yield some
            some, cells = [], 0
        some.append((part, room))
        cells += here
    if some:
        yield some


def _worth_timing(
    p: Problem,
    space: Space,
    asked: list[tuple[int, Room]],
    held: _Bytes,
    share: float,
    *,
    every: bool,
) -> Iterator[tuple[Ints, int]]:
    """For each part in a room the rows that fit and, unless it is `every` one, are not superseded
    by a row with less recompute or less on the host; and how many fit into that share of the
    memory. Their families are looked at one after the other."""
    kinds, part = len(space.kinds), np.array([part for part, _ in asked], dtype=np.intp)
    # What is reserved grows with what is live, so that the most that may be live is one number.
    capacity = np.array([r.device_bytes for _, r in asked])
    pooled = np.array([r.pooled for _, r in asked])
    reserved = np.asarray(
        reserve_bytes(live=0.0, memory_bytes=capacity, pooled=pooled, eff=p.eff), dtype=float
    )
    most_live = (capacity * share - reserved) / (1 + as_float(p.eff.fragmentation))
    host = np.array([r.host_bytes for _, r in asked])
    slower_host = np.array([r.is_host_slower for _, r in asked])
    num_fit = np.zeros(len(asked), dtype=np.intp)
    levels = list(zip(space.parts.begins, space.parts.ends, strict=True))
    least: list[tuple[Ints, NDArray[np.int8]]] = []  # by level: family 0 of each, and modes
    kept: list[tuple[Ints, Ints]] = []  # by level: rows, and which of the asked
    for level, (every_begin, every_end) in enumerate(levels):
        begins, lengths = every_begin[part], (every_end - every_begin)[part]
        zero = np.cumsum(lengths) - lengths - begins  # where family 0 of each would be
        family, of = _possible(space, level, part, held.least_live, most_live)
        most, mode = most_live[of], np.full(len(of), kinds, dtype=np.int8)
        fits = []
        for kind in reversed(range(kinds)):
            fit = held.live[kind][family] <= most
            if level:
                fit &= held.on_host[kind][family] <= host[of]
            mode[fit] = kind
            fits.append(fit)
            num_fit += np.bincount(of[fit], minlength=len(asked))
        if every:
            at, kind_at = np.nonzero(np.stack(fits[::-1], axis=1))
            kept.append((family[at] * kinds + kind_at, of[at]))
            continue
        wins = mode < kinds
        if slower_host.any():
            for low, (low_zero, other) in enumerate(least):
                below = space.below[low][family]
                wins &= _is_better(mode, below, low_zero[of], other) | ~slower_host[of]
            if level + 1 < len(levels):
                modes = np.full(int(lengths.sum()), kinds, dtype=np.int8)
                modes[zero[of] + family] = mode
                least.append((zero, modes))
        at = np.flatnonzero(wins)
        kept.append((family[at] * kinds + mode[at], of[at]))
    rows = np.concatenate([r for r, _ in kept])
    of_row = np.concatenate([o for _, o in kept])
    rows = rows[np.argsort(of_row, kind="stable")]
    stops = np.cumsum(np.bincount(of_row, minlength=len(asked))).tolist()
    for begin, end, num in zip([0, *stops], stops, num_fit.tolist(), strict=False):
        yield rows[begin:end], num


def _possible(
    space: Space, level: int, part: Ints, least_live: Floats, most_live: Floats
) -> tuple[Ints, Ints]:
    """The families of a level that are legal for their part and fit at least in the mode of theirs
    that takes the fewest bytes: their numbers, and which of the asked each is of."""
    begins, ends = space.parts.begins[level], space.parts.ends[level]
    found: list[tuple[Ints, Ints]] = []
    for at in np.unique(part).tolist():
        here = slice(begins[at], ends[at])
        legal = begins[at] + np.flatnonzero(space.parts.allowed[at][space.axis[here]])
        rooms = np.flatnonzero(part == at)
        room, family = np.nonzero(least_live[legal] <= most_live[rooms, None])
        found.append((legal[family], rooms[room]))
    return np.concatenate([f for f, _ in found]), np.concatenate([o for _, o in found])


def _is_better(
    mode: NDArray[np.int8], below: Ints, zero: Ints, other: NDArray[np.int8]
) -> NDArray[np.bool_]:
    """Whether families recompute less than with less on the host, or are not legal there. `below`:
    their numbers at the lower level; `zero`: where family 0 of it would be in `other`, its
    modes."""
    there = np.flatnonzero(below >= 0)
    better = np.ones(len(mode), dtype=bool)
    better[there] = mode[there] < other[(zero[there] + below[there])]
    return better
