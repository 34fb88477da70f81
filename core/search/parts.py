"""The candidates of each node shape, as parts of those of its GPU count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.search.candidates import Staged
from core.search.columns import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The candidates of each key, in the order of the keys. Keys of one GPU count share families:
    those of the smaller scale-up domain come first, and `allowed` says which sharding groups are
    whole nodes."""

    num_candidates: Ints
    removed: dict[str, Ints]
    num_cut: Ints  # candidates that were not evaluated: the job has too many
    num_legal: Ints  # families
    begins: list[Ints]  # first family of each part, by level of offload
    ends: list[Ints]
    allowed: Bools  # parts x strategies with their groups

    def __len__(self) -> int:
        return len(self.num_candidates)


def parts_of(f: Staged, *, any_tp: bool) -> Parts:
    """The parts of some GPU counts, by count and node shape; families and strategies are numbered
    from the first one. `any_tp`: tensor parallelism may leave the scale-up domain."""
    counts = np.arange(len(f.counts))
    shapes = [(n, m) for n, c in enumerate(f.counts) for m in range(len(c.shapes))]
    axis_count = np.repeat(counts, [len(c.axis) for c in f.counts])
    group = np.array([g for c in f.counts for _, g in c.axis])
    count = np.array([n for n, _ in shapes])
    domain = np.array([np.inf if any_tp else f.counts[n].shapes[m][1] for n, m in shapes])
    mine = (f.code_count == count[:, None]) & (f.code_tp <= domain[:, None])
    own_axis = axis_count == count[:, None]
    groups = [f.counts[n].groups[m] for n, m in shapes]
    allowed = own_axis & ((group == 0) | np.array([np.isin(group, some) for some in groups]))
    after = allowed.sum(axis=1) * f.per_strategy
    # Counts are whole numbers, so that products with 0 and 1 add up to the same in any order.
    tps = mine.astype(float)
    of_pair = (mine[:, f.pair_code] & allowed[:, f.pair_axis]).astype(float)
    pairs = [np.bincount(pair, minlength=len(f.pair_code)) for pair in f.pair]
    first = np.searchsorted(f.code_count, count)  # code
    last = first + mine.sum(axis=1)
    starts = np.cumsum([0, *(len(pair) for pair in f.pair)]).tolist()
    codes = [f.pair_code[pair] for pair in f.pair]
    return Parts(
        num_candidates=_whole(tps @ f.ways * after),
        removed=_of_parts(f.removed, tps, after)
        | _of_parts(f.removed_strategies, of_pair, np.full(len(shapes), f.kinds)),
        num_cut=_whole(tps @ f.cut * after),
        num_legal=_whole(of_pair @ sum(pairs, np.zeros(len(f.pair_code)))),
        begins=[s + np.searchsorted(c, first) for s, c in zip(starts, codes, strict=False)],
        ends=[s + np.searchsorted(c, last) for s, c in zip(starts, codes, strict=False)],
        allowed=allowed,
    )


def joined_parts(parts: Sequence[Parts], num_families: Sequence[int]) -> Parts:
    """Parts of spaces one after the other, of so many families each."""
    if len(parts) == 1:
        return parts[0]
    starts = (np.cumsum(num_families) - num_families).tolist()
    levels = range(len(parts[0].begins))
    num_axes = sum(p.allowed.shape[1] for p in parts)
    allowed = np.zeros((sum(len(p) for p in parts), num_axes), dtype=bool)
    row = column = 0
    for p in parts:
        below, right = p.allowed.shape
        allowed[row : row + below, column : column + right] = p.allowed
        row, column = row + below, column + right
    reasons = dict.fromkeys(reason for p in parts for reason in p.removed)
    return Parts(
        num_candidates=np.concatenate([p.num_candidates for p in parts]),
        removed={r: np.concatenate([p.removed[r] for p in parts]) for r in reasons},
        num_cut=np.concatenate([p.num_cut for p in parts]),
        num_legal=np.concatenate([p.num_legal for p in parts]),
        begins=[
            np.concatenate([s + p.begins[n] for s, p in zip(starts, parts, strict=True)])
            for n in levels
        ],
        ends=[
            np.concatenate([s + p.ends[n] for s, p in zip(starts, parts, strict=True)])
            for n in levels
        ],
        allowed=allowed,
    )


def _of_parts(table: dict[str, Floats], mine: Floats, after: Ints) -> dict[str, Ints]:
    """What each rule removed, by part, of a table by code or by pair."""
    sums = np.array(list(table.values())) @ mine.T * after
    return dict(zip(table, _whole(sums), strict=True))


def _whole(x: Floats) -> Ints:
    return np.rint(x).astype(np.intp)
