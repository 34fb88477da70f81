"""Search space: every candidate layout of every job, in few bytes per row.

A row is a family (everything but recompute) and a recompute mode;
rows that differ in recompute only are neighbours, the least recompute first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import RULES, Choices, Constraint, Layouts, recompute_kinds
from core.model.transformer import Transformer
from core.search.candidates import Staged, staged
from core.search.columns import Floats, Ints, layouts_of
from core.search.parts import Parts, joined_parts, parts_of

ROWS_AT_ONCE = 1_000_000  # legal candidates in memory at a time
TRIED_FOR_EACH = 2  # candidates, legal or not, of GPU counts that are staged together

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
class Space:
    """Families of every key as columns."""

    cells: dict[str, Floats]  # by CELL_COLUMNS
    cell: NDArray[np.int32]  # of each family
    strategy: NDArray[np.int8]
    group: NDArray[np.int32]  # GPUs over which hybrid sharding cuts one copy
    level: NDArray[np.int8]  # of core.memory.offload.LEVELS
    kinds: tuple[int, ...]  # recompute modes, the least first
    axis: NDArray[np.int32]  # of each family: its strategy and group, by their place in `parts`
    # Of each family, at each level of offload that may be below its own: the number of the family
    # there; -1 where it is not legal, or the level not below.
    below: tuple[Ints, ...]
    parts: Parts
    unit_codes: Ints  # of each cell: a number for its tp, cp, micro-batch, ep and etp
    num_unit_codes: int
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
    counts = [
        (num_gpus, [(k.gpus_per_node, k.domain) for k in alike])
        for num_gpus, alike in groupby(keys, key=lambda k: k.num_gpus)
    ]
    found: list[Staged] = []
    rows = 0
    for some in staged(
        counts,
        model=model,
        seq_len=seq_len,
        global_batch_size=global_batch_size,
        choices=choices,
        most_tried=TRIED_FOR_EACH * ROWS_AT_ONCE,
    ):
        found.append(some)
        rows += sum(len(c) for c in some.cell) * some.kinds
        if rows >= ROWS_AT_ONCE:
            yield _space(found, global_batch_size, choices)
            found, rows = [], 0
    if found:
        yield _space(found, global_batch_size, choices)


def _space(found: Sequence[Staged], global_batch_size: int, choices: Choices) -> Space:
    """The candidates of a few GPU counts as one space."""
    starts = np.cumsum([0, *(len(f.cells["tp"]) for f in found)])
    any_tp = bool(choices.tp or choices.tp_across_nodes)
    cells = {n: _joined([f.cells[n] for f in found], float) for n in CELL_COLUMNS}
    codes = _codes([cells[n] for n in ("tp", "cp", "micro_batch_size", "ep", "etp")])
    num_families = [sum(len(c) for c in f.cell) for f in found]
    axes = np.cumsum([0, *(sum(len(c.axis) for c in f.counts) for f in found)])
    return Space(
        cells=cells,
        unit_codes=codes,
        num_unit_codes=int(codes.max(initial=-1)) + 1,
        cell=_joined(
            [c + start for f, start in zip(found, starts, strict=False) for c in f.cell], np.int32
        ),
        strategy=_joined([x for f in found for x in f.strategy], np.int8),
        group=_joined([x for f in found for x in f.group], np.int32),
        level=_joined([np.full(len(c), n) for f in found for n, c in enumerate(f.cell)], np.int8),
        axis=_joined(
            [
                start + f.pair_axis[pair]
                for f, start in zip(found, axes, strict=False)
                for pair in f.pair
            ],
            np.int32,
        ),
        below=tuple(
            np.concatenate([_below(f, low, start) for f, start in zip(found, first, strict=True)])
            for first in [np.cumsum(num_families) - num_families]
            for low in range(len(found[0].cell) - 1)
        ),
        kinds=tuple(recompute_kinds(choices)),
        parts=joined_parts([parts_of(f, any_tp=any_tp) for f in found], num_families),
        global_batch_size=global_batch_size,
        choices=choices,
    )


def _below(f: Staged, low: int, start: int) -> Ints:
    """Of each family, its number at a lower level; the first family is `start`."""
    begin = start + sum(len(c) for c in f.cell[:low])
    of_level = [
        np.where(f.below[level][low] < 0, -1, begin + f.below[level][low])
        if level > low
        else np.full(len(cell), -1)
        for level, cell in enumerate(f.cell)
    ]
    return np.concatenate(of_level)


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
    parts, kinds = space.parts, np.arange(len(space.kinds))
    every = [np.arange(b[0], e[0]) for b, e in zip(parts.begins, parts.ends, strict=True)]
    family = np.concatenate([f[parts.allowed[0, space.axis[f]]] for f in every])
    rows = (family[:, None] * len(kinds) + kinds).ravel()
    return space.layouts(rows), [
        Constraint(reason=reason, sentence=sentence, count=int(parts.removed[reason][0]))
        for reason, sentence in RULES.items()
    ]


def _joined(arrays: Sequence[NDArray[Any]], kind: Any) -> NDArray[Any]:
    return np.concatenate(arrays).astype(kind) if arrays else np.empty(0, dtype=kind)


def _codes(columns: Sequence[Floats]) -> Ints:
    """An integer code for each combination of values."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, number = np.unique(column, return_inverse=True)
        code = code * len(values) + number
    return np.unique(code, return_inverse=True)[1]
