"""Alternatives to the recommended plan: fewest GPUs, fastest, cheapest, the user's cluster.

Each function returns a row number. Columns have one row per plan, all of which fit; NaN dollars are
a price that is not known. Ties go to the plan that is better in the other respect, then to the
first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def smallest_count(*, num_gpus: Ints, usd: Floats, hours: Floats) -> int | None:
    """The plan with the fewest GPUs; of these the cheapest, then the fastest."""
    return _first(np.ones(len(num_gpus), dtype=bool), num_gpus, _priced(usd), hours)


def fastest(*, usd: Floats, hours: Floats, budget_usd: float | None = None) -> int | None:
    """The fastest plan within the budget; without a budget, at any price.

    >>> usd, hours = np.array([1.0, 2.0, 9.0]), np.array([3.0, 2.0, 1.0])
    >>> fastest(usd=usd, hours=hours, budget_usd=5.0), fastest(usd=usd, hours=hours)
    (1, 2)
    """
    kept = np.ones(len(usd), dtype=bool) if budget_usd is None else usd <= budget_usd
    return _first(kept, hours, _priced(usd))


def cheapest(*, usd: Floats, hours: Floats, on_time: NDArray[np.bool_]) -> int | None:
    """The cheapest priced plan of those that end by the deadline as surely as asked."""
    kept = ~np.isnan(usd) & on_time
    return _first(kept, _priced(usd), hours)


def best_of_cluster(*, is_cluster: NDArray[np.bool_], usd: Floats, hours: Floats) -> int | None:
    """The fastest of the rows on the user's own cluster; of equally fast ones the cheapest."""
    return _first(is_cluster, hours, _priced(usd))


def _priced(usd: Floats) -> Floats:
    return np.where(np.isnan(usd), np.inf, usd)


def _first(kept: NDArray[np.bool_], *by: NDArray[np.generic]) -> int | None:
    """The kept row that is least by the columns, in their order; None if there is none."""
    rows = np.flatnonzero(kept)
    if not len(rows):
        return None
    return int(rows[np.lexsort(tuple(column[rows] for column in reversed(by)))[0]])
