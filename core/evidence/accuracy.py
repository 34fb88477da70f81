"""Error metrics of `runcast validate`: how far forecasts are from measurements.

p is what was predicted, m what was measured. A row without a measurement is not scored; a row that
the forecast refused is counted but not scored. A metric is None where no row can be scored.

Published tables repeat a configuration from release to release. The metrics that start with
`weighted_` give the rows of one configuration one vote together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.evidence.coverage import binomial_interval

NEAR = 0.20  # "within 20%"
NOISE = 0.02  # a measured change below this has no direction: repeats of one run differ by 0.027
CHANGE = 0.05  # a change that is clearly no noise
ROUNDING = 1e-9  # of a sum of weights
FITS_AT_MOST = 0.05  # highest P(out of memory) of a layout that is called "fits"
TIGHT_AT_MOST = 0.90  # highest P(out of memory) of one called "tight"; above, it does not fit
MEMORY_CLASSES = ("fits", "tight", "does not fit")

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Labels = NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Errors of one set of forecasts."""

    n: int  # rows scored
    refused: int  # rows for which the forecast was refused
    median_ape: float | None  # half of the forecasts are nearer than this
    mean_ape: float | None  # dominated by the worst rows
    p90_ape: float | None  # one forecast in ten is worse
    within_20: float | None  # share of forecasts with an error of at most 20%
    coverage_80: float | None  # share of measurements in [P10, P90]; 0.8 is honest
    bias: float | None  # median of p/m - 1: above 0 is too fast, or too large
    family_median_ape: float | None  # median of the families' medians: repeats count once
    coverage_low: float | None = None  # exact 90% bounds of the coverage, core/evidence/coverage.py
    coverage_high: float | None = None
    families: int | None = None
    configurations: int | None = None  # configurations among the rows scored; each weighs 1
    weighted_median_ape: float | None = None
    weighted_mean_ape: float | None = None
    weighted_p90_ape: float | None = None
    weighted_within_20: float | None = None
    weighted_coverage_80: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OomAccuracy:
    """Does the forecast know which runs ran out of memory?"""

    n_oom: int
    n_fit: int
    mean_probability_of_oom: float | None  # mean P(out of memory) of runs that did: 1 is right
    mean_probability_of_fit: float | None  # mean P(out of memory) of runs that fitted: 0 is right
    oom_found: float | None  # share of runs out of memory with P > 1/2
    false_alarms: float | None  # share of fitting runs with P > 1/2
    brier: float | None  # mean (P - outcome)^2: 0 is perfect, 0.25 is always saying 1/2
    classes_of_fit: dict[str, int] = field(default_factory=dict)  # of runs that fitted
    classes_of_oom: dict[str, int] = field(default_factory=dict)  # of runs out of memory


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAccuracy:
    """Errors of predicted effects of one knob, b against a."""

    n: int
    refused: int
    median_ape: float | None  # of |(p_b/p_a) / (m_b/m_a) - 1|
    mean_ape: float | None
    p90_ape: float | None
    within_20: float | None
    median_log_error: float | None  # median |ln(p_b/p_a) - ln(m_b/m_a)|
    no_change_median_ape: float | None  # median_ape of a forecast that says "the knob does nothing"
    direction_right: float | None  # right side of 1, of pairs that moved by more than NOISE;
    # a forecast of exactly no change is wrong there
    no_change_median_log_error: float | None = None  # median |ln(m_b/m_a)|
    n_changed: int = 0  # pairs that moved by more than CHANGE
    changed_direction_right: float | None = None  # share with the right side of 1 among these


def relative_errors(*, predicted: Numbers, measured: Numbers) -> Numbers:
    """|p/m - 1|, the absolute percentage error as a fraction; NaN where either is unknown.

    >>> relative_errors(predicted=np.array([90.0, 130.0]), measured=np.array([100.0, 100.0]))
    array([0.1, 0.3])
    """
    return np.abs(predicted / measured - 1)


def scored(
    *,
    predicted: Numbers,
    measured: Numbers,
    refused: Flags,
    low: Numbers | None = None,
    high: Numbers | None = None,
    family: Labels | None = None,
    configuration: Labels | None = None,
) -> Accuracy:
    """Metrics over the rows that have both p and m and whose forecast was not refused.

    `low` and `high` are P10 and P90; without them there is no coverage. `family` names rows of
    one publication, model and accelerator, `configuration` rows that repeat one another.
    """
    use = np.isfinite(predicted) & np.isfinite(measured) & ~refused
    p, m = predicted[use], measured[use]
    errors = relative_errors(predicted=p, measured=m)
    inside = None if low is None or high is None else (low[use] <= m) & (m <= high[use])
    families = None if family is None else _group_medians(errors, family[use])
    bounds = None
    if inside is not None and inside.size:
        bounds = binomial_interval(int(inside.sum()), inside.size)
    return Accuracy(
        n=int(use.sum()),
        refused=int(refused.sum()),
        median_ape=_median(errors),
        mean_ape=_mean(errors),
        p90_ape=_quantile(errors, 0.9),
        within_20=_mean(errors <= NEAR),
        coverage_80=None if inside is None else _mean(inside),
        bias=_median(p / m - 1),
        family_median_ape=None if families is None else _median(families),
        coverage_low=bounds[0] if bounds else None,
        coverage_high=bounds[1] if bounds else None,
        families=None if families is None else families.size,
        **_weighted(errors, inside, None if configuration is None else configuration[use]),
    )


def repeat_weights(configuration: Labels) -> Numbers:
    """Weight of each row, so that the rows of one configuration weigh 1 together.

    >>> repeat_weights(np.array(["a", "a", "b"]))
    array([0.5, 0.5, 1. ])
    """
    _, which, counts = np.unique(configuration, return_inverse=True, return_counts=True)
    return 1.0 / counts[which]


def weighted_quantile(values: Numbers, weights: Numbers, share: float) -> float | None:
    """The smallest value that at least `share` of the weight does not exceed."""
    if not values.size:
        return None
    order = np.argsort(values)
    so_far = np.cumsum(weights[order])
    enough = share * so_far[-1] * (1 - ROUNDING)  # a third three times is one
    return float(values[order][np.searchsorted(so_far, enough)])


def _weighted(
    errors: Numbers, inside: Flags | None, configuration: Labels | None
) -> dict[str, Any]:
    """The metrics in which each configuration counts once."""
    if configuration is None or not errors.size:
        return {} if configuration is None else {"configurations": 0}
    weights = repeat_weights(configuration)
    return {
        "configurations": round(float(weights.sum())),
        "weighted_median_ape": weighted_quantile(errors, weights, 0.5),
        "weighted_mean_ape": float(np.average(errors, weights=weights)),
        "weighted_p90_ape": weighted_quantile(errors, weights, 0.9),
        "weighted_within_20": float(np.average(errors <= NEAR, weights=weights)),
        "weighted_coverage_80": None
        if inside is None
        else float(np.average(inside, weights=weights)),
    }


def scored_by(
    labels: Labels,
    *,
    predicted: Numbers,
    measured: Numbers,
    refused: Flags,
    low: Numbers | None = None,
    high: Numbers | None = None,
    family: Labels | None = None,
    configuration: Labels | None = None,
) -> dict[str, Accuracy]:
    """`scored` of the rows of each label, the largest first; labels without any row left out."""
    parts = {}
    for label in np.unique(labels):
        rows = labels == label
        parts[str(label)] = scored(
            predicted=predicted[rows],
            measured=measured[rows],
            refused=refused[rows],
            low=None if low is None else low[rows],
            high=None if high is None else high[rows],
            family=None if family is None else family[rows],
            configuration=None if configuration is None else configuration[rows],
        )
    kept = {label: part for label, part in parts.items() if part.n + part.refused > 0}
    return dict(sorted(kept.items(), key=lambda item: (-item[1].n, item[0])))


def scored_oom(*, probability_oom: Numbers, oom: Numbers, refused: Flags) -> OomAccuracy:
    """Classification of runs that are known to have run out of memory (1) or not (0)."""
    use = np.isfinite(probability_oom) & np.isfinite(oom) & ~refused
    probability, outcome = probability_oom[use], oom[use]
    out = outcome == 1
    return OomAccuracy(
        n_oom=int(out.sum()),
        n_fit=int((~out).sum()),
        mean_probability_of_oom=_mean(probability[out]),
        mean_probability_of_fit=_mean(probability[~out]),
        oom_found=_mean(probability[out] > 0.5),
        false_alarms=_mean(probability[~out] > 0.5),
        brier=_mean((probability - outcome) ** 2),
        classes_of_fit=memory_classes(probability[~out]),
        classes_of_oom=memory_classes(probability[out]),
    )


def memory_classes(probability_oom: Numbers) -> dict[str, int]:
    """Number of rows forecast to fit, to be tight, and not to fit.

    >>> memory_classes(np.array([0.0, 0.05, 0.5, 0.9, 0.91]))
    {'fits': 2, 'tight': 2, 'does not fit': 1}
    """
    which = np.searchsorted([FITS_AT_MOST, TIGHT_AT_MOST], probability_oom, side="left")
    return {name: int((which == i).sum()) for i, name in enumerate(MEMORY_CLASSES)}


def scored_pairs(
    *, predicted_ratio: Numbers, measured_ratio: Numbers, refused: Flags
) -> PairAccuracy:
    """Metrics of predicted against measured ratios b/a, refused pairs counted apart."""
    use = np.isfinite(predicted_ratio) & np.isfinite(measured_ratio) & ~refused
    p, m = predicted_ratio[use], measured_ratio[use]
    errors = relative_errors(predicted=p, measured=m)
    moved, changed = np.abs(m - 1) > NOISE, np.abs(m - 1) > CHANGE
    right = np.sign(p - 1) == np.sign(m - 1)
    return PairAccuracy(
        n=int(use.sum()),
        refused=int(refused.sum()),
        median_ape=_median(errors),
        mean_ape=_mean(errors),
        p90_ape=_quantile(errors, 0.9),
        within_20=_mean(errors <= NEAR),
        median_log_error=_median(np.abs(np.log(p / m))),
        no_change_median_ape=_median(relative_errors(predicted=np.ones_like(m), measured=m)),
        direction_right=_mean(right[moved]),
        no_change_median_log_error=_median(np.abs(np.log(m))),
        n_changed=int(changed.sum()),
        changed_direction_right=_mean(right[changed]),
    )


def scored_pairs_by(
    labels: Labels, *, predicted_ratio: Numbers, measured_ratio: Numbers, refused: Flags
) -> dict[str, PairAccuracy]:
    """`scored_pairs` of the pairs of each label, the largest first."""
    parts = {}
    for label in np.unique(labels):
        rows = labels == label
        parts[str(label)] = scored_pairs(
            predicted_ratio=predicted_ratio[rows],
            measured_ratio=measured_ratio[rows],
            refused=refused[rows],
        )
    kept = {label: part for label, part in parts.items() if part.n + part.refused > 0}
    return dict(sorted(kept.items(), key=lambda item: (-item[1].n, item[0])))


def _group_medians(values: Numbers, groups: Labels) -> Numbers:
    """The median of each group, in the order of their names.

    >>> _group_medians(np.array([3.0, 1.0, 8.0, 2.0]), np.array(["b", "a", "b", "b"]))
    array([1., 3.])
    """
    _, which, counts = np.unique(groups, return_inverse=True, return_counts=True)
    ordered = values[np.lexsort((values, which))]
    first = np.cumsum(counts) - counts
    return (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2


def _median(values: Numbers) -> float | None:
    return _quantile(values, 0.5)


def _quantile(values: Numbers, share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None


def _mean(values: Numbers | Flags) -> float | None:
    return float(np.mean(values)) if values.size else None
