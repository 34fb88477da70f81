"""Strategies of data parallelism, and places of what they keep, for the cells of a search: which
are legal, and what each rule removes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.layout.layouts import SEARCHED, Choices, strategy_rules
from core.layout.sharding import INDEX
from core.memory.offload import LEVELS
from core.search.columns import Bools, Floats, Ints, layouts_of, ragged, rows_of


def num_levels(choices: Choices) -> int:
    """Levels of offload to try."""
    return len(LEVELS) if choices.searches_offload else 1


def strategies(choices: Choices, groups: list[list[int]]) -> list[tuple[int, int]]:
    """Strategies, and for hybrid sharding the GPUs over which it divides one copy."""
    found: list[tuple[int, int]] = []
    for name in choices.shardings or SEARCHED:
        several = sorted({g for some in groups for g in some}) if name == "hsdp" else [0]
        found += [(INDEX[name], g) for g in several]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The strategies of all counts, one after the other, and their pairs with codes."""

    strategy: Ints
    group: Ints
    length: Ints  # of the axis of each code
    pair_begins: Ints  # of the pairs of each code
    pair_code: Ints
    pair_axis: Ints

    @classmethod
    def of(cls, axes: list[list[tuple[int, int]]], code_count: Ints) -> Axes:
        """Of the axis of each count, and the count of each code."""
        flat = np.array([pair for axis in axes for pair in axis], dtype=np.intp).reshape(-1, 2)
        of_count = np.array([len(axis) for axis in axes], dtype=np.intp)
        length = of_count[code_count]
        begins = (np.cumsum(of_count) - of_count)[code_count]
        pair_code, nth = ragged(length)
        return cls(
            strategy=flat[:, 0],
            group=flat[:, 1],
            length=length,
            pair_begins=np.cumsum(length) - length,
            pair_code=pair_code,
            pair_axis=begins[pair_code] + nth,
        )


def legal_strategies(
    cells: dict[str, Floats], code: Ints, axes: Axes, choices: Choices
) -> tuple[list[Bools], dict[str, Floats], Ints, Ints]:
    """For each level of offload: which cells with a strategy are legal, and how many each rule is
    the first to remove, by pair; then the cell and the pair of each."""
    row, nth = ragged(axes.length[code])
    pair = axes.pair_begins[code][row] + nth
    axis = axes.pair_axis[pair]
    found: list[Bools] = []
    removed: dict[str, Floats] = {}
    lay = layouts_of(
        rows_of(cells, row),
        strategy=axes.strategy[axis].astype(float),
        group=axes.group[axis].astype(float),
        global_batch_size=1,
        choices=choices,
    )
    for optimizer, params in LEVELS[: num_levels(choices)]:
        lay = replace(lay, offload_optimizer=optimizer, offload_params=params)
        out = np.zeros(len(row), dtype=bool)
        for reason, rows in strategy_rules(lay, choices=choices).items():
            held = removed.setdefault(reason, np.zeros(len(axes.pair_code)))
            if not rows.any():
                continue
            first = rows & ~out
            removed[reason] = held + np.bincount(pair[first], minlength=len(held))
            out |= first
        found.append(~out)
    return found, removed, row, pair


def below(legal: list[Bools]) -> list[list[Ints]]:
    """Positions of each family in lower levels of offload; -1 where it is not legal there."""
    place = [np.where(m, np.cumsum(m) - 1, -1) for m in legal]
    return [[p[m] for p in place[:level]] for level, m in enumerate(legal)]
