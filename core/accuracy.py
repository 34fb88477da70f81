"""How far forecasts are from measurements: the error metrics of `runcast validate`.

p is what was predicted, m what was measured. A row without a measurement is not scored; a row
that the forecast refused is counted, not scored. Every metric is None where no row has it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NEAR = 0.20  # "within 20%"
NOISE = 0.02  # a measured change below this has no direction: repeats of one run differ by 0.027

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Labels = NDArray[np.str_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Errors of one set of forecasts."""

    n: int  # rows scored
    refused: int  # rows that ask for a forecast and got none
    median_ape: float | None  # half of the forecasts are nearer than this
    mean_ape: float | None  # dominated by the worst rows
    p90_ape: float | None  # one forecast in ten is worse
    within_20: float | None  # share of forecasts with an error of at most 20%
    coverage_80: float | None  # share of measurements in [P10, P90]; 0.8 is honest
    bias: float | None  # median of p/m - 1: above 0 is too fast, or too large
    family_median_ape: float | None  # median of the families' medians: repeats count once


@dataclass(frozen=True, slots=True, kw_only=True)
class OomAccuracy:
    """Does the forecast know which runs ran out of memory?"""

    n_oom: int
    n_fit: int
    mean_probability_of_oom: float | None  # mean P(out of memory) of runs that did: 1 is right
    mean_probability_of_fit: float | None  # the same of runs that fitted: 0 is right
    oom_found: float | None  # share of runs out of memory with P > 1/2
    false_alarms: float | None  # share of fitting runs with P > 1/2
    brier: float | None  # mean (P - outcome)^2: 0 is perfect, 0.25 is always saying 1/2


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
    no_change_median_ape: float | None  # the same as median_ape for "the knob does nothing"
    direction_right: float | None  # right side of 1, of pairs that moved by more than NOISE;
    # a forecast of exactly no change is wrong there


def repeat_weights(configuration: Labels) -> Numbers:
    """Weight of each row so that repeats of one configuration count once.

    >>> repeat_weights(np.array(["a", "b", "a"]))
    array([0.5, 1. , 0.5])
    """
    _, code, counts = np.unique(configuration, return_inverse=True, return_counts=True)
    return 1.0 / counts[code]


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
) -> Accuracy:
    """Metrics over the rows that have both p and m and were not refused.

    `low` and `high` are P10 and P90; without them there is no coverage. `family` names rows that
    repeat one configuration or come from one publication.
    """
    use = np.isfinite(predicted) & np.isfinite(measured) & ~refused
    p, m = predicted[use], measured[use]
    errors = relative_errors(predicted=p, measured=m)
    inside = None if low is None or high is None else (low[use] <= m) & (m <= high[use])
    families = None if family is None else _group_medians(errors, family[use])
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
    )


def scored_by(
    labels: Labels,
    *,
    predicted: Numbers,
    measured: Numbers,
    refused: Flags,
    low: Numbers | None = None,
    high: Numbers | None = None,
    family: Labels | None = None,
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
    )


def scored_pairs(
    *, predicted_ratio: Numbers, measured_ratio: Numbers, refused: Flags
) -> PairAccuracy:
    """Metrics of predicted against measured ratios b/a, refused pairs counted apart."""
    use = np.isfinite(predicted_ratio) & np.isfinite(measured_ratio) & ~refused
    p, m = predicted_ratio[use], measured_ratio[use]
    errors = relative_errors(predicted=p, measured=m)
    moved = np.abs(m - 1) > NOISE
    return PairAccuracy(
        n=int(use.sum()),
        refused=int(refused.sum()),
        median_ape=_median(errors),
        mean_ape=_mean(errors),
        p90_ape=_quantile(errors, 0.9),
        within_20=_mean(errors <= NEAR),
        median_log_error=_median(np.abs(np.log(p / m))),
        no_change_median_ape=_median(relative_errors(predicted=np.ones_like(m), measured=m)),
        direction_right=_mean(np.sign(p[moved] - 1) == np.sign(m[moved] - 1)),
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
    return np.array([np.median(values[groups == g]) for g in np.unique(groups)], dtype=float)


def _median(values: Numbers) -> float | None:
    return _quantile(values, 0.5)


def _quantile(values: Numbers, share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None


def _mean(values: Numbers | Flags) -> float | None:
    return float(np.mean(values)) if values.size else None
