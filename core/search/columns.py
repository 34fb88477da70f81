"""Columns of degrees, as tables of rows and as layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import CONTEXT_METHODS, SCHEDULES, Choices, Layouts
from core.layout.sharding import INDEX
from core.memory.offload import LEVELS

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


def rows_of(columns: dict[str, Floats], rows: Ints) -> dict[str, Floats]:
    """The given rows of each column."""
    return {name: column[rows] for name, column in columns.items()}


def ragged(lengths: Ints) -> tuple[Ints, Ints]:
    """Rows of a table whose groups have these lengths: the group of each row, and its number there.

    >>> [column.tolist() for column in ragged(np.array([2, 0, 1]))]
    [[0, 0, 2], [0, 1, 0]]
    """
    group = np.repeat(np.arange(len(lengths)), lengths)
    return group, np.arange(len(group)) - (np.cumsum(lengths) - lengths)[group]


_LEVELS = np.array(LEVELS)


def layouts_of(
    cells: dict[str, Floats],
    *,
    global_batch_size: int,
    choices: Choices,
    strategy: Floats | float = 0.0,
    group: Floats | float = 0.0,
    level: NDArray[Any] | int = 0,
    recompute: Floats | float = 0.0,
) -> Layouts:
    """Columns as layouts, with the fields that follow from degrees, strategy and batch."""
    t, cp = cells["tp"], cells["cp"]
    one = np.ones_like(t)
    b = cells.get("micro_batch_size", one)
    ranks = cells["num_gpus"] / (t * cells["pp"] * cp)
    hybrid = np.asarray(strategy) == INDEX["hsdp"]
    shard = np.where(hybrid, np.minimum(group / (t * cp), ranks), ranks)
    places = _LEVELS[np.asarray(level, dtype=int)] * one[:, None]
    return Layouts(
        num_gpus=cells["num_gpus"],
        tp=t,
        pp=cells["pp"],
        virtual_stages=cells["virtual_stages"],
        cp=cp,
        ep=cells.get("ep", one),
        etp=cells.get("etp", one),
        dp_replicate=ranks / shard,
        dp_shard=shard,
        strategy=strategy * one,
        micro_batch_size=b,
        num_microbatches=global_batch_size / (ranks * b),
        recompute=recompute * one,
        sequence_parallel=(t > 1).astype(float),
        schedule=SCHEDULES.index(choices.schedule) * one,
        context_method=CONTEXT_METHODS.index(choices.context_method) * one,
        reshard=float(choices.reshard) * one,
        offload_optimizer=places[:, 0],
        offload_params=places[:, 1],
    )


def joined_layouts(parts: Sequence[Layouts]) -> Layouts:
    """Columns of layouts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    names = [f.name for f in fields(Layouts)]
    return Layouts(
        **{
            n: np.concatenate([np.asarray(getattr(p, n)) for p in parts] or [np.empty(0)])
            for n in names
        }
    )
