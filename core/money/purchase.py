"""Cost of reservations and capacity blocks, and shares of simulated samples.

A reservation is paid for its whole term, used or not; a run bears its share of the hours, over the
share of the term that is used. A capacity block is a window that is paid whole.

[AWS] AWS, "Find and purchase Capacity Blocks" (EC2 User Guide, as of 2025): windows of 1 to 14 days
      by the day, then by 7 days up to 182; instances are ended from 30 minutes before its end.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from core.numeric import Numeric
from core.units import DAY_S, HOUR_S

TERM_HOURS: Mapping[str, float] = {"reserved_1y": 8760.0, "reserved_3y": 26_280.0}
DAILY_UP_TO, WEEK_DAYS, LONGEST_BLOCK_DAYS = 14, 7, 182  # [AWS]
BLOCK_ENDS_EARLY_HOURS = 0.5  # [AWS]


def break_even_utilisation(*, reserved_usd: Numeric, on_demand_usd: Numeric) -> Numeric:
    """Share of its term above which a reservation is cheaper than on-demand: the ratio of the two
    prices. Above 1: never.

    >>> float(break_even_utilisation(reserved_usd=1.5, on_demand_usd=2.5))
    0.6
    """
    return np.divide(reserved_usd, on_demand_usd)[()]


def num_terms(*, run_hours: Numeric, term_hours: Numeric) -> Numeric:
    """Terms of a reservation that a run begins, at least one.

    >>> float(num_terms(run_hours=9000.0, term_hours=8760.0))
    2.0
    """
    return np.maximum(np.ceil(np.divide(run_hours, term_hours)), 1.0)


def block_hours(*, run_hours: Numeric) -> Numeric:
    """Hours of the shortest capacity block that holds a run; several of the longest, one after the
    other, where no block is long enough. [AWS]

    >>> [float(block_hours(run_hours=h)) / 24 for h in (30.0, 24.0 * 15, 5000.0)]
    [2.0, 21.0, 364.0]
    """
    days = np.ceil(np.add(run_hours, BLOCK_ENDS_EARLY_HOURS) / 24)
    weeks = WEEK_DAYS * np.ceil(days / WEEK_DAYS)
    longest = LONGEST_BLOCK_DAYS * np.ceil(days / LONGEST_BLOCK_DAYS)
    window = np.where(days > DAILY_UP_TO, weeks, days)
    return 24.0 * np.where(days > LONGEST_BLOCK_DAYS, longest, window)


def usable_block_s(*, window_days: float) -> float:
    """Seconds of a block in which a run may train. [AWS]

    >>> usable_block_s(window_days=1.0)
    84600.0
    """
    return window_days * DAY_S - BLOCK_ENDS_EARLY_HOURS * HOUR_S


def late_share(samples: NDArray[np.float64], limit: float) -> float:
    """Share of simulated times, or costs, that are above a limit."""
    return float(np.mean(samples > limit))


def chances(samples: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distribution function of the samples: the share of them that is at most each of `at`."""
    return np.searchsorted(np.sort(samples), at, side="right") / samples.size
