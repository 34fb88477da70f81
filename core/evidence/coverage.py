"""Coverage of forecast intervals: exact binomial bounds, and the verdict.

Rows are assumed to be independent. Rows of one table are not quite, so the true bounds are wider: a
class that is called too narrow here may still be honest.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np

NOMINAL = 0.80  # share of outcomes that P10 to P90 should hold
TAIL = 0.05  # each side of the bounds, and of the test against NOMINAL
LARGE = 40  # from this many rows on, a class is held to a band instead of a test
CLASS_BAND = (0.72, 0.88)  # allowed coverage of a large class
HALVINGS = 40  # of [0, 1]: 1e-12


def binomial_interval(inside: int, n: int) -> tuple[float, float]:
    """Bounds of the true share after `inside` of n: each excludes a side at the level TAIL.

    C. J. Clopper and E. S. Pearson, Biometrika 26 (1934) 404.

    >>> low, high = binomial_interval(0, 10)
    >>> low, round(high, 3)  # 1 - 0.05 ** (1 / 10)
    (0.0, 0.259)
    """
    counts = np.arange(n + 1, dtype=float)
    log_of = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])  # log k!
    log_choose = log_of[n] - log_of - log_of[::-1]

    def at_most(k: int, share: float) -> float:
        terms = log_choose + counts * log(share) + (n - counts) * log(1 - share)
        return float(np.exp(terms[: k + 1]).sum())

    low = 0.0 if inside == 0 else _root(lambda p: at_most(inside - 1, p) >= 1 - TAIL)
    high = 1.0 if inside == n else _root(lambda p: at_most(inside, p) > TAIL)
    return low, high


def _root(is_below: Callable[[float], bool]) -> float:
    """The share in [0, 1] at which `is_below` turns false, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return (low + high) / 2


def verdict(*, n: int, coverage: float, high: float) -> str:
    """Verdict on the coverage of a class: 'honest', 'too narrow' or 'too wide'.

    A large class is held to its band. A smaller one is too narrow only where chance alone would
    hardly give so few (binomial, 5%, one-sided): `high` is the upper bound of its coverage.
    """
    if n < LARGE:
        return "too narrow" if high < NOMINAL else "honest"
    if coverage < CLASS_BAND[0]:
        return "too narrow"
    return "too wide" if coverage > CLASS_BAND[1] else "honest"
