"""Robust, deterministic fit of a few bounded parameters to measured runs, with priors.

Minimises, over parameters x and one nuisance effect b of each source,

    sum_i w_i rho(y_i - f_i(x) - b_s(i))  +  sum_j ((x_j - prior_j)/sigma_j)^2  +  sum_s (b_s/t)^2

with y, f logarithms and rho the Huber loss in units of `NOISE`. The effects absorb what one
publication measures differently from the others (its clocks, its counting); a forecast never uses
them. Gauss-Newton with reweighting, step halving and clipping to the bounds.

[H64] Huber, "Robust estimation of a location parameter", Ann. Math. Statist. 35(1), 1964.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.numeric import Z_90, one_thread

Numbers = NDArray[np.float64]
# (trials, parameters) -> (trials, rows) of log predictions
Model = Callable[[Numbers], Numbers]

NOISE = 0.06  # log ratio: repeats of one configuration differ by 0.03 at the median, 0.15 at P90
STEPS = (1.0, 0.5, 0.25, 0.1, 0.03)
COVERAGE = 0.8  # of the intervals
DIFFERENCE = 0.02  # of a prior's sigma, in numerical derivatives


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Prior of each parameter; columns of length k."""

    value: Numbers
    sigma: Numbers
    low: Numbers
    high: Numbers
    source_sigma: float = 0.03  # log ratio: width of a source's effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The fitted parameters and their standard deviations."""

    value: Numbers
    sigma: Numbers  # posterior standard deviation; the prior's where no run tells of it
    objective: float
    iterations: int


def huber_weight(residual: Numbers, scale: float = NOISE) -> Numbers:
    """Weight of a residual in reweighted least squares. [H64]

    >>> huber_weight(np.array([0.03, 0.12]))
    array([1. , 0.5])
    """
    return 1.0 / np.maximum(np.abs(residual) / scale, 1.0)


def _loss(residual: Numbers) -> Numbers:
    """Huber's rho, doubled so that it is the square near zero, in units of NOISE."""
    z = np.abs(residual) / NOISE
    return np.where(z <= 1, z * z, 2 * z - 1)


def _effects(
    residual: Numbers, weight: Numbers, source: NDArray[np.intp], source_sigma: float
) -> Numbers:
    """Each row's source effect: the shrunken robust mean of its source's residuals."""
    effect = np.zeros(int(source.max(initial=0)) + 1)
    for _ in range(5):
        w = weight * huber_weight(residual - effect[source]) / NOISE**2
        total = np.bincount(source, w, len(effect)) + 1 / source_sigma**2
        effect = np.bincount(source, w * residual, len(effect)) / total
    return effect


def _objective(
    value: Numbers, residual: Numbers, weight: Numbers, source: NDArray[np.intp], priors: Priors
) -> tuple[float, Numbers]:
    effect = _effects(residual, weight, source, priors.source_sigma)
    data = np.sum(weight * _loss(residual - effect[source]))
    belief = np.sum(((value - priors.value) / priors.sigma) ** 2)
    return float(data + belief + np.sum((effect / priors.source_sigma) ** 2)), effect


@one_thread
def fit(
    model: Model,
    *,
    measured: Numbers,
    weight: Numbers,
    source: NDArray[np.intp],
    priors: Priors,
    acts_on: NDArray[np.bool_] | None = None,
    max_iterations: int = 40,
    tolerance: float = 1e-4,
) -> Fit:
    """The parameters that explain `measured` (logs, n rows) best, starting from the priors.

    `weight`: 0 leaves a row out. `acts_on` (parameters x rows): the rows that a parameter may move;
    derivatives of those that share none are made by one trial. Stops when an iteration lowers the
    objective by less than `tolerance` of it.
    """
    if acts_on is None:
        acts_on = np.ones((len(priors.value), len(measured)), dtype=np.bool_)
    trial_of = _trials(acts_on)
    value = np.clip(priors.value, priors.low, priors.high)
    residual = measured - model(value[None])[0]
    best, effect = _objective(value, residual, weight, source, priors)
    curvature = np.diag(1 / priors.sigma**2)
    iterations = 0
    for _ in range(max_iterations):
        iterations += 1
        jacobian = _jacobian(model, value, priors, acts_on, trial_of)
        step, curvature = _gauss_newton(jacobian, value, residual, effect, weight, source, priors)
        trials = np.clip(value + np.outer(STEPS, step), priors.low, priors.high)
        found = measured - model(trials)
        scores = [
            _objective(t, r, weight, source, priors) for t, r in zip(trials, found, strict=True)
        ]
        j = int(np.argmin([s[0] for s in scores]))
        if scores[j][0] > best - tolerance * abs(best):
            break
        value, residual, (best, effect) = trials[j], found[j], scores[j]
    sigma = np.sqrt(np.diag(np.linalg.inv(curvature)))
    return Fit(
        value=value, sigma=np.minimum(sigma, priors.sigma), objective=best, iterations=iterations
    )


def _trials(acts_on: NDArray[np.bool_]) -> NDArray[np.intp]:
    """For each parameter the number of the trial that moves it: those of one trial share no row
    (Curtis, Powell and Reid, J. Inst. Maths Applics 13, 1974).

    >>> _trials(np.array([[True, True], [True, False], [False, True]])).tolist()
    [0, 1, 1]
    """
    taken: list[NDArray[np.bool_]] = []  # rows by trial
    found = np.zeros(len(acts_on), dtype=np.intp)
    for j, rows in enumerate(acts_on):
        free = (n for n, others in enumerate(taken) if not np.any(rows & others))
        found[j] = n = next(free, len(taken))
        if n == len(taken):
            taken.append(rows.copy())
        else:
            taken[n] |= rows
    return found


def _jacobian(
    model: Model,
    value: Numbers,
    priors: Priors,
    acts_on: NDArray[np.bool_],
    trial_of: NDArray[np.intp],
) -> Numbers:
    """Derivative of each row by each parameter, as rows x parameters."""
    move = DIFFERENCE * priors.sigma
    move = np.where(value + move > priors.high, -move, move)
    trials = np.tile(value, (int(trial_of.max(initial=-1)) + 2, 1))
    trials[trial_of, np.arange(len(value))] += move
    found = model(trials)  # the last one moves nothing
    changes = np.where(acts_on, found[trial_of] - found[-1], 0.0)
    return np.asarray((changes / move[:, None]).T)


def _gauss_newton(
    jacobian: Numbers,
    value: Numbers,
    residual: Numbers,
    effect: Numbers,
    weight: Numbers,
    source: NDArray[np.intp],
    priors: Priors,
) -> tuple[Numbers, Numbers]:
    """Step of the parameters and the curvature after the source effects are eliminated.

    A parameter that sits on a bound and is pushed outwards stays where it is.
    """
    k = len(value)
    w = weight * huber_weight(residual - effect[source]) / NOISE**2
    sources = int(source.max(initial=0)) + 1
    shrunk = np.bincount(source, w, sources) + 1 / priors.source_sigma**2
    summed = np.zeros((sources, k))
    np.add.at(summed, source, w[:, None] * jacobian)
    pulled = np.bincount(source, w * residual, sources)
    belief = np.diag(1 / priors.sigma**2)
    curvature = (
        jacobian.T @ (w[:, None] * jacobian) - summed.T @ (summed / shrunk[:, None]) + belief
    )
    gradient = jacobian.T @ (w * residual) - summed.T @ (pulled / shrunk)
    gradient = gradient - (value - priors.value) / priors.sigma**2
    stuck = ((value <= priors.low) & (gradient < 0)) | ((value >= priors.high) & (gradient > 0))
    free = ~stuck
    step = np.zeros(k)
    if free.any():
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], gradient[free])
    return step, curvature


def fit_widths(
    residual: Numbers, terms: Numbers, weight: Numbers, *, low: Numbers, high: Numbers,
    most_skew: float = 0.0,
) -> tuple[Numbers, float]:  # fmt: skip
    """Widths s whose quadrature sqrt(sum (s_k terms_k)^2) gives the best 80% intervals, and the
    part, at most `most_skew`, by which these are wider below 0 and narrower above.

    Minimises the mean interval score of [G07] of residuals (logs, n rows; `terms`: n x k) around
    0, by pattern search in log s from the middle of the bounds, and in the skew from 0.

    [G07] Gneiting and Raftery, "Strictly proper scoring rules", JASA 102(477), 2007, section 6.2.
    """
    outside = 2 / (1 - COVERAGE)

    def score(widths: Numbers, skew: float) -> float:
        reach = Z_90 * np.sqrt((terms**2) @ (widths**2))
        below = np.maximum(-residual - reach * (1 + skew), 0.0)
        above = np.maximum(residual - reach * (1 - skew), 0.0)
        return float(np.average(2 * reach + outside * (below + above), weights=weight))

    floor = np.maximum(low, 0.005)
    widths, skew = np.clip(np.full(len(low), 0.1), floor, high), 0.0
    best, stride = score(widths, skew), 2.0
    while stride > 1.005:
        moved = False
        for k in range(len(widths)):
            for factor in (stride, 1 / stride):
                tried = widths.copy()
                tried[k] = np.clip(tried[k] * factor, floor[k], high[k])
                if (found := score(tried, skew)) < best:
                    widths, best, moved = tried, found, True
        for more in (0.1 * (stride - 1), 0.1 * (1 - stride)) if most_skew else ():
            other = min(max(skew + more, 0.0), most_skew)
            if (found := score(widths, other)) < best:
                skew, best, moved = other, found, True
        stride = stride if moved else float(np.sqrt(stride))
    return widths, skew
