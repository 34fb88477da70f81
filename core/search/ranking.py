"""Ranking of plans: within the limits first, then by price or by time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def within(values: Floats, limit: float | None) -> NDArray[np.bool_]:
    """Whether each value is within the limit: all are without a limit, an unknown value never
    is."""
    if limit is None:
        return np.ones(len(values), dtype=bool)
    return np.asarray(values <= limit)  # NaN compares false


def surely(chances: Floats, confidence: float | None) -> NDArray[np.bool_]:
    """Whether each chance is as high as asked: all are where none is asked."""
    if confidence is None:
        return np.ones(len(chances), dtype=bool)
    return np.asarray(chances >= confidence)


def order(
    *,
    usd: Floats,
    hours: Floats,
    meets_limits: NDArray[np.bool_],
    faults: NDArray[np.intp],
    by: str,
) -> NDArray[np.intp]:
    """Row numbers, best first: those within the limits, those with a price, those with the fewest
    faults (things that speak against recommending them), then `by`.

    >>> order(usd=np.array([2.0, 1.0, 0.5]), hours=np.array([1.0, 2.0, 0.5]), by="time",
    ...     meets_limits=np.full(3, True), faults=np.array([0, 0, 1])).tolist()
    [0, 1, 2]
    """
    price = np.where(np.isnan(usd), np.inf, usd)
    first, second = (hours, price) if by == "time" else (price, hours)
    return np.lexsort((second, first, faults, np.isnan(usd), ~meets_limits))


def with_first(ranked: NDArray[np.intp], row: int) -> NDArray[np.intp]:
    """The row numbers in their order, one of them moved to the front.

    >>> with_first(np.array([2, 0, 1]), 1).tolist()
    [1, 2, 0]
    """
    return np.concatenate([[row], ranked[ranked != row]]).astype(np.intp)


def standing(values: Floats, *, in_doubt: NDArray[np.bool_]) -> Floats:
    """The values with NaN for rows in doubt; all of them if no other row has a value.

    >>> values = np.array([1.0, 2.0])
    >>> standing(values, in_doubt=np.array([True, False])).tolist()
    [nan, 2.0]
    >>> standing(values, in_doubt=np.array([True, True])).tolist()
    [1.0, 2.0]
    """
    kept = np.where(in_doubt, np.nan, values)
    return values if np.isnan(kept).all() else kept


def counts_to_try(
    *,
    gpus_per_instance: int,
    flops_of_run: float,
    peak_flops_per_s: float,
    longest_s: float,
    target_s: float,
    most: int = 131_072,
) -> tuple[list[int], int]:
    """GPU counts to try (powers of two times the instance), and how many were too small.

    A count is too small if not even the peak rate ends the run within `longest_s`. The largest
    count tried ends it within `target_s` at a quarter of the peak, or is the last up to 1,024.
    """
    needed = flops_of_run / (peak_flops_per_s * target_s * 0.25)
    largest = min(max(1024.0, 2 * needed), most)
    least = flops_of_run / (peak_flops_per_s * longest_s)
    counts = []
    count = gpus_per_instance
    while count <= largest:
        counts.append(count)
        count *= 2
    return [c for c in counts if c >= least], sum(c < least for c in counts)


def frontier(cost: Floats, time: Floats) -> NDArray[np.bool_]:
    """Rows that no other row beats in both cost and time; NaN cost is never on it.

    >>> frontier(np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 2.0])).tolist()
    [True, True, False]
    """
    on = np.zeros(len(cost), dtype=bool)
    rows = np.flatnonzero(np.isfinite(cost) & np.isfinite(time))
    order = rows[np.lexsort((time[rows], cost[rows]))]
    fastest = np.minimum.accumulate(np.concatenate([[np.inf], time[order]]))[:-1]
    on[order[time[order] < fastest]] = True
    return on
