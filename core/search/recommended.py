"""The recommended plan: gates that it has to pass, then cost, time and simplicity.

A gate is a column of shortfalls: 0 passes, more is further from it. A gate that nothing passes is
left out, and the rows closest to it go on, so that there always is an answer which says what is
wrong with it. Of what is left the cheapest counts; of all within 5% of it the fastest; of all
within 3% of that the simplest. Ranked by time, cost and time change places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.layout.layouts import Layouts

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NEAR, NEARLY_AS_FAST = 1.05, 1.03  # of the best, in what comes first and in what comes second
CLOSE = 0.05  # of shortfalls of a gate that nothing passes
MOST_PROBABILITY_OOM = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommended:
    """One row, and the rows that it is compared with."""

    row: int
    base: int  # the cheapest of those that pass, or ranked by time the fastest
    cheapest: int  # the cheapest of all, or the fastest
    num_passing: int  # rows that pass every gate that some row passes
    empty: tuple[str, ...]  # gates that nothing passes, of those that pass the gates before
    failed: tuple[str, ...]  # gates that `cheapest` does not pass


def recommended(
    *, usd: Floats, hours: Floats, complexity: Floats, gates: Mapping[str, Floats], by: str
) -> Recommended | None:
    """The recommended row; None if there is no row. Rows without a price, or that never end, only
    if there are no others. A shortfall that is not known (NaN) passes no gate.

    >>> found = recommended(usd=np.array([100.0, 101.0, 90.0]), hours=np.array([9.0, 4.0, 9.0]),
    ...     complexity=np.zeros(3), gates={"memory": np.array([0.0, 0.0, 0.1])}, by="usd")
    >>> found.row, found.base, found.cheapest, found.failed
    (1, 0, 2, ('memory',))
    """
    if not len(usd):
        return None
    first, second = (hours, usd) if by == "time" else (usd, hours)
    field = np.isfinite(usd) & np.isfinite(hours)
    if not field.any():
        field = np.isfinite(hours)
        first = second = hours
    if not field.any():
        field = np.ones(len(usd), dtype=bool)
        first = second = complexity
    cheapest = _least(field, first, second)
    gates = {name: np.where(np.isnan(far), np.inf, far) for name, far in gates.items()}
    empty = []
    for name, shortfall in gates.items():
        if not (passed := field & (shortfall <= 0)).any():
            empty.append(name)
            passed = field & (shortfall <= shortfall[field].min() + CLOSE)
        field = passed
    base = _least(field, first, second)
    near = field & (first <= first[base] * NEAR)
    fastest = second[_least(near, second, first)]
    return Recommended(
        row=_least(near & (second <= fastest * NEARLY_AS_FAST), complexity, first, second),
        base=base,
        cheapest=cheapest,
        num_passing=int(field.sum()),
        empty=tuple(empty),
        failed=tuple(name for name, shortfall in gates.items() if shortfall[cheapest] > 0),
    )


def late_by(*, chances: Floats, hours: Floats, deadline_hours: float, confidence: float) -> Floats:
    """Shortfall of the chance of a deadline; where there is none at all, by how much it is
    missed."""
    short = np.maximum(confidence - chances, 0.0)
    hopeless = chances < 1e-6
    return np.where(hopeless, 1.0 + hours / deadline_hours, short)


def complexity(layouts: Layouts) -> Floats:
    """How much there is to get wrong: offload, then kinds of parallelism, then recompute."""
    offload = sum(np.asarray(x) > 0 for x in (layouts.offload_optimizer, layouts.offload_params))
    kinds = sum(np.asarray(x) > 1 for x in (layouts.tp, layouts.pp, layouts.cp, layouts.ep))
    return np.asarray(100.0 * offload + 10.0 * kinds + np.asarray(layouts.recompute))


def _least(kept: Bools, *by: Floats) -> int:
    rows = np.flatnonzero(kept)
    return int(rows[np.lexsort(tuple(column[rows] for column in reversed(by)))[0]])
