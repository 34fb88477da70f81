"""Corrections of the predicted rate of matmuls, by shape, from a few measured shapes.

The log of measured over predicted rate is a constant of the machine plus a smooth function of (log
m, log n, log k): a Gaussian process. At a measured shape their sum is the measurement, between
shapes they interpolate, far from all of them only the constant is left, and without any shape it is
the prior: no correction. The smooth part is linear in one weight per shape, which is stored with
the machine.

[RW06] Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006: prediction (2.25),
a constant with a prior of its own (2.7), leave-one-out errors in closed form (5.12).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.numeric import Numeric

Column = NDArray[np.float64]

# Of greatest marginal likelihood [RW06, 5.8] over the 35 published matmul shapes of four parts in
# hardware/measured_kernels.csv, of 0.04 to 0.2 and 0.5 to 3.
SHAPE_SIGMA = 0.15  # deviation of a shape from the constant of its machine, a log ratio
LENGTH = 1.0  # correlation length in log units


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeFit:
    """Fitted correction from a few measured shapes."""

    constant: float  # log ratio of the machine
    constant_sigma: float  # share of its prior that is left
    at: Column  # (shapes, 3): log m, log n, log k
    weights: Column  # (shapes,), of the smooth part
    leave_one_out: Column  # (shapes,): log of measured over the prediction from the other shapes


def fit(
    *, m: Column, n: Column, k: Column, log_ratio: Column, sigma: Column, prior_sigma: float
) -> ShapeFit:
    """The fit of measured shapes: `log_ratio` of measured over predicted rate with an error `sigma`
    each, above 0; `prior_sigma` is the prior deviation of the machine from the prediction. [RW06]

    >>> import numpy as np
    >>> shape = {axis: np.array([1024.0]) for axis in "mnk"}
    >>> found = fit(**shape, log_ratio=np.array([0.2]), sigma=np.array([1e-6]), prior_sigma=0.15)
    >>> round(found.constant, 3), round(float(log_factor(found.at, found.weights, **shape)[0]), 3)
    (0.1, 0.1)
    """
    at = np.log(np.stack([m, n, k], axis=1))
    covariance = (
        prior_sigma**2 + SHAPE_SIGMA**2 * _likeness(at[:, None, :], at) + np.diag(np.square(sigma))
    )
    inverse = np.linalg.inv(covariance)
    weights = inverse @ log_ratio
    left = prior_sigma**2 - prior_sigma**4 * float(inverse.sum())
    return ShapeFit(
        constant=prior_sigma**2 * float(weights.sum()),
        constant_sigma=float(np.sqrt(max(left, 0.0))),
        at=at,
        weights=weights,
        leave_one_out=weights / np.diag(inverse),
    )


def log_factor(at: Numeric, weights: Numeric, *, m: Numeric, n: Numeric, k: Numeric) -> Numeric:
    """The smooth part at other shapes, as the log of a rate. One set of measured shapes, or one per
    row: `at` (..., shapes, 3), `weights` (..., shapes). [RW06, 2.25]"""
    at = np.asarray(at)
    squared: Numeric = 0.0
    for axis, size in enumerate((m, n, k)):
        squared = squared + np.square(np.log(np.asarray(size))[..., None] - at[..., axis])
    near = np.exp(squared * (-0.5 / LENGTH**2))
    return SHAPE_SIGMA**2 * np.einsum("...s,...s->...", near, np.asarray(weights))


def _likeness(a: Column, b: Column) -> Column:
    """Covariance exp(-d^2 / 2 l^2) of shapes along the last axis, broadcast."""
    squared: Column = np.sum(np.square(a - b), axis=-1)
    return np.exp(-squared / (2 * LENGTH**2))
