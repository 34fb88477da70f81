"""How much longer than forecast the work of a run takes: a factor of median 1.

It is a log-normal that is shifted so that its P10 and P90 are those of the forecast speed
(core/evidence/uncertainty.py), which is skewed towards slower. With Z the normal quantile of 0.9,
s the width of the log speed and k its skew,

    factor = 1 + scale (e^(width z) - 1),  z standard normal
    e^(Z width) = (e^(Z s (1 + k)) - 1) / (1 - e^(-Z s (1 - k)))
    scale = (e^(Z s (1 + k)) - 1) / (e^(Z width) - 1)

Without skew it is the log-normal of width s: scale 1. [J94]

[J94] Johnson, Kotz, Balakrishnan, "Continuous Univariate Distributions" 1, 1994, chapter 14.
"""

from __future__ import annotations

import numpy as np

from core.numeric import Z_90, Numeric

EVEN = 1e-9  # a ratio of both sides nearer to 1 is taken as this far from it
NARROW = 1e-6  # width below which the scale falls to 0 in proportion: differences lose digits there


def time_factor(sigma: Numeric, skew: Numeric) -> tuple[Numeric, Numeric]:
    """Scale and width of the factor, of the width of the log speed and its skew (0 to below 1).

    >>> scale, width = time_factor(0.2, 0.0)
    >>> round(float(scale), 9), round(float(width), 9)
    (1.0, 0.2)
    """
    given = np.asarray(sigma, dtype=float)
    s = np.maximum(given, NARROW)
    slower = np.expm1(Z_90 * s * np.add(1.0, skew))
    faster = -np.expm1(-Z_90 * s * np.subtract(1.0, skew))
    scale, width = through_quantiles(slower, faster)
    return scale * np.minimum(given / NARROW, 1.0), width


def through_quantiles(slower: Numeric, faster: Numeric) -> tuple[Numeric, Numeric]:
    """Scale and width of the factor whose P90 lies `slower` above 1 and whose P10 `faster` below.

    >>> scale, width = through_quantiles(0.1, 0.1)  # as far on both sides: all but a normal
    >>> round(float(1 + scale * np.expm1(Z_90 * width)), 6)
    1.1
    """
    ratio = np.divide(slower, faster)
    ratio = np.where(np.abs(ratio - 1) < EVEN, 1 + EVEN, ratio)
    return slower / (ratio - 1), np.log(ratio) / Z_90


def factor_cumulants(sigma: Numeric, skew: Numeric) -> tuple[Numeric, Numeric, Numeric]:
    """Mean, variance and third central moment of the factor."""
    scale, width = time_factor(sigma, skew)
    w, grown = np.exp(np.square(width)), np.expm1(np.square(width))
    return (
        1 + scale * (np.sqrt(w) - 1),
        scale**2 * w * grown,
        scale**3 * w**1.5 * grown**2 * (w + 2),
    )


def factor_at(z: float, sigma: Numeric, skew: Numeric) -> Numeric:
    """The factor at a quantile of the standard normal: at 1.28, one run in ten takes longer.

    >>> round(float(factor_at(Z_90, 0.2, 0.5)), 4), round(float(factor_at(-Z_90, 0.2, 0.5)), 4)
    (1.4688, 0.8797)
    """
    scale, width = time_factor(sigma, skew)
    return 1 + scale * np.expm1(z * width)
