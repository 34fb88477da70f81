"""Baseline that a forecast must beat: the median utilisation of similar published runs.

No physics: a run is predicted to reach the median MFU of other published runs on the same
accelerator, in the same precision, with or without experts, on the same framework. A row never sees
its own group (one publication of one model on one accelerator), because the rows of one table
nearly give each other's answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Texts = NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Predicted MFU of each row, and how many keys were dropped to find it (4: the global median).
    NaN and -1 where no other group has a measured run."""

    mfu: Numbers
    dropped: NDArray[np.int64]


def out_of_group_mfu(
    *,
    mfu: Numbers,
    group: Texts,
    accelerator: Texts,
    precision: Texts,
    architecture: Texts,
    framework: Texts,
) -> Baseline:
    """Median MFU of rows of OTHER groups with the same keys.

    Keys are dropped one by one, from the last, until some row is left: framework, then
    architecture (dense or moe), then precision, then accelerator. `mfu` is NaN where it was not
    measured: such a row is predicted, but predicts no other.
    """
    keys = [_codes(k) for k in (accelerator, precision, architecture, framework)]
    groups = _codes(group)
    predicted = np.full(len(mfu), np.nan)
    dropped = np.full(len(mfu), -1, dtype=np.int64)
    for num_dropped in range(len(keys) + 1):
        cell = np.zeros(len(mfu), dtype=np.int64)
        for key in keys[: len(keys) - num_dropped]:
            cell = _codes(cell * (key.max(initial=0) + 1) + key)
        found = _median_of_others(mfu, cell, groups)
        new = (dropped < 0) & np.isfinite(found)
        predicted[new], dropped[new] = found[new], num_dropped
    return Baseline(mfu=predicted, dropped=dropped)


def _median_of_others(mfu: Numbers, cell: NDArray[np.int64], groups: NDArray[np.int64]) -> Numbers:
    """Per row, the median of the finite values in its cell outside its group, else NaN."""
    found = np.full(len(mfu), np.nan)
    for c in np.unique(cell):
        rows = np.flatnonzero(cell == c)
        measured = rows[np.isfinite(mfu[rows])]
        for g in np.unique(groups[rows]):
            others = mfu[measured[groups[measured] != g]]
            if others.size:
                found[rows[groups[rows] == g]] = np.median(others)
    return found


def _codes(values: NDArray[np.str_] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Integer codes: equal values get equal codes."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
