"""Measured runs that are most like a plan, by a distance over what differs.

The distance is a sum of terms, one for each thing that differs. A number counts by its doublings
(|log2| of the ratio) times its weight, a name by its weight. The weights are judgement, in units of
one doubling of the model; their order follows how fast the correlation of forecast errors falls
when that thing changes: with another accelerator most, with the layout least.

Validity: for choosing which runs to show with a forecast; no forecast depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.numeric import Bools, Numeric

Words = str | NDArray[np.str_]
Distances = dict[str, NDArray[np.float64]]

WEIGHTS = {
    "accelerator": 2.0,
    "peak": 0.5,  # per doubling of the 16-bit peak, in addition to another name
    "params": 1.0,  # per doubling of the active parameters
    "architecture": 2.0,  # dense against mixture of experts
    "task": 4.0,  # all weights trained against adapters
    "quantised": 0.5,  # frozen weights in 4 bits against 16
    "bits": 1.0,  # per halving of the matmul operands
    "precision": 0.25,  # another recipe
    "num_gpus": 0.3,
    "seq_len": 0.5,
    "tp": 0.25,
    "pp": 0.25,
    "cp": 0.25,
    "ep": 0.25,
    "framework": 0.5,
}
UNKNOWN_DOUBLINGS = 1.0  # doublings that a blank degree counts as


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """What is compared: one plan (scalars) or a table of runs (columns). NaN: not known."""

    accelerator: Words
    peak: Numeric  # dense 16-bit FLOP/s of one device
    params: Numeric  # active ones
    architecture: Bools  # whether it has experts
    task: Bools  # whether only adapters are trained
    quantised: Bools  # whether frozen weights are held in 4 bits
    bits: Numeric  # of a matmul operand
    precision: Words
    num_gpus: Numeric
    seq_len: Numeric
    tp: Numeric
    pp: Numeric
    cp: Numeric
    ep: Numeric
    framework: Words  # '' for none in particular


NUMBERS = ("peak", "params", "bits", "num_gpus", "seq_len", "tp", "pp", "cp", "ep")


def distances(one: Configuration, many: Configuration) -> Distances:
    """Each term of the distance of every row of `many` from `one`; the distance is their sum."""
    found: Distances = {}
    for name in (f.name for f in fields(Configuration)):
        a, b = getattr(one, name), np.asarray(getattr(many, name))
        found[name] = WEIGHTS[name] * (doublings(a, b) if name in NUMBERS else _differs(name, a, b))
    return found


def doublings(a: Numeric, b: Numeric) -> NDArray[np.float64]:
    """How many doublings lie between two positive numbers; a blank is `UNKNOWN_DOUBLINGS`.

    >>> float(doublings(8.0, 64.0)), float(doublings(8.0, float("nan")))
    (3.0, 1.0)
    """
    apart = np.abs(np.log2(np.asarray(b, dtype=float)) - np.log2(np.asarray(a, dtype=float)))
    return np.where(np.isnan(apart), UNKNOWN_DOUBLINGS, apart)


def _differs(name: str, a: Any, b: NDArray[Any]) -> NDArray[np.float64]:
    different = b != a
    if name == "framework" and a == "":
        different = np.zeros(np.shape(b), dtype=bool)
    return np.asarray(different, dtype=np.float64)


def nearest_rows(
    terms: Distances, *, top: int, group: NDArray[Any], newer: NDArray[Any]
) -> NDArray[np.intp]:
    """The rows of least distance, one of each group, the nearest first.

    Of equal distances the one that sorts last by `newer` counts.
    """
    total = np.sum(list(terms.values()), axis=0)
    newest_first = np.argsort(newer, kind="stable")[::-1]
    order = newest_first[np.argsort(np.round(total[newest_first], 9), kind="stable")]
    _, first = np.unique(group[order], return_index=True)
    return order[np.sort(first)[:top]]
