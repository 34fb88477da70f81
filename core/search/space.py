"""Search space: every candidate layout of every job, in few bytes per row.

A row is a family (everything but recompute) and a recompute mode;
rows that differ in recompute only are neighbours, the least recompute first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import RULES, Choices, Constraint, Layouts, recompute_kinds
from core.model.transformer import Transformer
from core.search.candidates import Bools, Floats, Ints, Staged, layouts_of, staged

ROWS_AT_ONCE = 1_000_000  # legal candidates in memory at a time

CELL_COLUMNS = (
    "num_gpus", "tp", "pp", "virtual_stages", "cp", "micro_batch_size", "ep", "etp",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What the legal layouts of a job depend on, apart from model and batch."""

    num_gpus: int
    gpus_per_node: int
    domain: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The candidates of one key. Keys of one GPU count share families: those of the smaller
    scale-up domain come first, and `allowed` says which sharding groups are whole nodes."""

    num_candidates: int
    removed: Counter[str]
    num_cut: int  # candidates that were not evaluated: the job has too many
    num_legal: int  # families
    families: tuple[slice, ...]  # of the space, by level of offload
    allowed: tuple[Bools, ...]
    # For each level and each one below it: the position of the family in the lower slice; -1 where
    # it is not legal.
    below: tuple[tuple[Ints, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Families of every key as columns."""

    cells: dict[str, Floats]  # by CELL_COLUMNS
    cell: NDArray[np.int32]  # of each family
    strategy: NDArray[np.int8]
    group: NDArray[np.int32]  # GPUs over which hybrid sharding cuts one copy
    level: NDArray[np.int8]  # of core.memory.offload.LEVELS
    kinds: tuple[int, ...]  # recompute modes, the least first
    parts: tuple[Part, ...]
    unit_codes: Ints  # of each cell: a number for its tp, cp, micro-batch, ep and etp
    global_batch_size: int
    choices: Choices

    @property
    def num_rows(self) -> int:
        """Legal candidates."""
        return len(self.cell) * len(self.kinds)

    def layouts(self, rows: Ints) -> Layouts:
        """The layouts of the given rows; row = family x recompute modes + mode."""
        family, kind = np.divmod(rows, len(self.kinds))
        return layouts_of(
            {name: column[self.cell[family]] for name, column in self.cells.items()},
            strategy=self.strategy[family].astype(float),
            group=self.group[family].astype(float),
            level=self.level[family],
            recompute=np.array(self.kinds, dtype=float)[kind],
            global_batch_size=self.global_batch_size,
            choices=self.choices,
        )

    def cell_layouts(self) -> Layouts:
        """One layout for each cell, with any strategy."""
        return layouts_of(
            self.cells, global_batch_size=self.global_batch_size, choices=self.choices
        )


def spaces(
    keys: Sequence[Key],
    *,
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    choices: Choices,
) -> Iterator[Space]:
    """The legal candidates of every key, for as many keys at a time as fit the memory limit."""
    found: list[Staged] = []
    rows = 0
    for num_gpus, alike in groupby(keys, key=lambda k: k.num_gpus):
        shapes = [(k.gpus_per_node, k.domain) for k in alike]
        found.append(staged(num_gpus, shapes, model, seq_len, global_batch_size, choices))
        rows += sum(len(c) for c in found[-1].cell) * len(recompute_kinds(choices))
        if rows >= ROWS_AT_ONCE:
            yield _space(found, global_batch_size, choices)
            found, rows = [], 0
    if found:
        yield _space(found, global_batch_size, choices)


def _space(found: Sequence[Staged], global_batch_size: int, choices: Choices) -> Space:
    """The candidates of a few GPU counts as one space."""
    starts = np.cumsum([0, *(len(f.cells["tp"]) for f in found)])
    parts: list[Part] = []
    at = 0
    for f in found:
        begins = []
        for cell in f.cell:
            begins.append(at)
            at += len(cell)
        parts += [_part(f, shape, begins) for shape in f.shapes]
    cells = {n: _joined([f.cells[n] for f in found], float) for n in CELL_COLUMNS}
    return Space(
        cells=cells,
        unit_codes=_codes([cells[n] for n in ("tp", "cp", "micro_batch_size", "ep", "etp")]),
        cell=_joined(
            [c + start for f, start in zip(found, starts, strict=False) for c in f.cell], np.int32
        ),
        strategy=_joined([x for f in found for x in f.strategy], np.int8),
        group=_joined([x for f in found for x in f.group], np.int32),
        level=_joined([np.full(len(c), n) for f in found for n, c in enumerate(f.cell)], np.int8),
        kinds=tuple(recompute_kinds(choices)),
        parts=tuple(parts),
        global_batch_size=global_batch_size,
        choices=choices,
    )


def candidates(
    *,
    model: Transformer,
    seq_len: int,
    global_batch_size: int,
    num_gpus: int,
    gpus_per_node: int,
    scale_up_domain: int,
    choices: Choices,
) -> tuple[Layouts, list[Constraint]]:
    """Every legal layout of one job on `num_gpus`, and how many each rule removed.

    Only a given degree is tried. Context parallelism is searched for long
    sequences, virtual stages for the interleaved schedule.
    """
    key = Key(num_gpus=num_gpus, gpus_per_node=gpus_per_node, domain=scale_up_domain)
    (space,) = spaces(
        [key],
        model=model,
        seq_len=seq_len,
        global_batch_size=global_batch_size,
        choices=choices,
    )
    part, kinds = space.parts[0], np.arange(len(space.kinds))
    family = np.concatenate(
        [f.start + np.flatnonzero(a) for f, a in zip(part.families, part.allowed, strict=True)]
    )
    rows = (family[:, None] * len(kinds) + kinds).ravel()
    return space.layouts(rows), [
        Constraint(reason=reason, sentence=sentence, count=part.removed[reason])
        for reason, sentence in RULES.items()
    ]


def _part(f: Staged, shape: tuple[int, int], begins: list[int]) -> Part:
    """The part of one node shape."""
    n = f.shapes.index(shape)
    mine = f.tps <= f.limits[n]
    of_axis = np.array([group == 0 or group in f.groups[n] for _, group in f.axis])
    after = int(of_axis.sum()) * f.per_strategy
    # Counts are whole numbers, so that products with 0 and 1 add up to the same in any order.
    tps, axis = mine.astype(float), of_axis.astype(float)
    removed = Counter({r: round(float(w @ tps)) * after for r, w in f.removed.items()})
    for reason, table in f.removed_strategies.items():
        removed[reason] += round(float(tps @ table @ axis)) * f.kinds
    has_groups = any(group for _, group in f.axis)
    families, allowed, below = [], [], []
    for level, cell in enumerate(f.cell):
        many = int(np.searchsorted(f.cells["tp"][cell], f.limits[n], side="right"))
        families.append(slice(begins[level], begins[level] + many))
        group = f.group[level][:many]
        of_nodes = group == 0
        for size in f.groups[n] if has_groups else ():
            of_nodes |= group == size
        allowed.append(of_nodes)
        below.append(tuple(b[:many] for b in f.below[level]))
    return Part(
        num_candidates=round(float(f.ways[mine].sum())) * after,
        removed=removed,
        num_cut=round(float(f.cut[mine].sum())) * after,
        num_legal=sum(int(a.sum()) for a in allowed),
        families=tuple(families),
        allowed=tuple(allowed),
        below=tuple(below),
    )


def _joined(arrays: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(arrays).astype(kind) if arrays else np.empty(0, dtype=kind)


def _codes(columns: Sequence[Floats]) -> Ints:
    """An integer code for each combination of values."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, number = np.unique(column, return_inverse=True)
        code = code * len(values) + number
    return np.unique(code, return_inverse=True)[1]
