"""Choosing by forecast: regret, how far the chosen falls short, and the correction for it.

Whoever takes the best of many forecasts takes errors that flatter: the optimizer's curse [SW06].
How much of it there is depends on what the errors are. If a forecast is the truth plus noise, the
best of n falls short by sigma x E[maximum of n normals]; if the truth scatters around the
forecast, because of what a forecast leaves out, the best falls short no more than the others.
Groups of measured configurations that somebody could choose between show which it is:

    shortfall = ln(forecast / measured) of the chosen, the highest forecast of its group
    own       = shortfall - mean of ln(forecast / measured) over its group
    lead      = ln(forecast of the chosen) - mean of ln(forecast) over its group
    shrink    = sum of own / sum of lead, over the groups

`shrink` is the share of a lead that was not there when it was measured: the weight of the common
mean in the posterior mean of [SW06], estimated from outcomes. What a whole group is off by is an
error of the model for that publication and no curse.

[SW06] Smith and Winkler, "The Optimizer's Curse: Skepticism and Postdecision Surprise in Decision
Analysis", Management Science 52(3), 2006.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.numeric import Numeric

Numbers = NDArray[np.float64]
Labels = NDArray[np.str_]

FEWEST = 3  # configurations of a group
EQUAL = 1e-9  # log forecasts this close are one: any of them may be chosen
SAMPLES = 1000  # of the bootstrap
BOUNDS = (0.05, 0.95)  # of an interval
MEASURES = (
    "regret_median", "regret_p10", "best_share", "bias", "own_bias", "lead", "shrink",
    "bias_corrected", "own_bias_corrected",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What the forecast chooses in each group; columns with one row per group."""

    group: Labels
    publication: Labels  # that of the chosen configuration
    chosen: Labels  # its configuration
    best: Labels  # the fastest configuration when measured
    size: NDArray[np.intp]
    regret: Numbers  # measured speed of the chosen over that of the best: 1 is no regret
    shortfall: Numbers
    own: Numbers
    lead: Numbers

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure over all groups, with a 90% interval from a bootstrap over them."""

    value: float
    low: float
    high: float


def choices(
    *,
    log_forecast: Numbers,
    log_measured: Numbers,
    group: Labels,
    configuration: Labels,
    publication: Labels,
) -> Choices:
    """The choice in each group of at least `FEWEST` configurations, in the order of their names.

    Rows that repeat a configuration of a group count as one, with the means of their logarithms.
    Rows without a forecast or a measurement are left out. Where several forecasts are the highest,
    the choice is as good as these are on average.
    """
    rows = np.flatnonzero(np.isfinite(log_forecast) & np.isfinite(log_measured))
    texts: list[tuple[str, str, str, str]] = []
    numbers: list[tuple[float, ...]] = []
    names, of_group = np.unique(group[rows], return_inverse=True)
    labels, of_label = np.unique(configuration[rows], return_inverse=True)
    for code in np.flatnonzero(np.bincount(of_group, minlength=len(names)) >= FEWEST):
        part = np.flatnonzero(of_group == code)
        mine = rows[part]
        distinct, first, which = np.unique(of_label[part], return_index=True, return_inverse=True)
        if len(distinct) < FEWEST:
            continue
        repeats = np.bincount(which)
        forecast = np.bincount(which, log_forecast[mine]) / repeats
        measured = np.bincount(which, log_measured[mine]) / repeats
        highest = np.flatnonzero(forecast >= forecast.max() - EQUAL)
        reached = float(np.log(np.exp(measured[highest]).mean()))
        shortfall = float(forecast.max()) - reached
        texts.append((
            str(names[code]),
            str(publication[mine[first[highest[0]]]]),
            str(labels[distinct[highest[0]]]),
            str(labels[distinct[measured.argmax()]]),
        ))  # fmt: skip
        numbers.append((
            len(distinct),
            float(np.exp(reached - measured.max())),
            shortfall,
            shortfall - float(np.mean(forecast - measured)),
            float(forecast.max() - forecast.mean()),
        ))  # fmt: skip
    of_text = np.array(texts, dtype=np.str_).reshape(-1, 4).T
    of_number = np.array(numbers, dtype=np.float64).reshape(-1, 5).T
    return Choices(
        group=of_text[0],
        publication=of_text[1],
        chosen=of_text[2],
        best=of_text[3],
        size=of_number[0].astype(np.intp),
        regret=of_number[1],
        shortfall=of_number[2],
        own=of_number[3],
        lead=of_number[4],
    )


def shrink(*, own: Numbers, lead: Numbers) -> Numeric:
    """Share of a lead that was not there when measured, over the last axis. [SW06]

    >>> float(shrink(own=np.array([0.25, 0.0]), lead=np.array([0.5, 0.5])))
    0.25
    """
    total = np.asarray(lead.sum(axis=-1))
    return own.sum(axis=-1) / np.where(total > 0, total, np.inf)


def chosen_correction(
    *, log_chosen: Numeric, log_alternatives: Numbers, shrink: Numeric
) -> Numeric:
    """What to add to the log of the speed that is expected of a chosen plan, for the curse.

        -shrink x (ln of the chosen - mean ln of all alternatives), at most 0        [SW06]

    `log_alternatives`, over its last axis (NaN: none), are the forecasts that the plan was chosen
    from, itself among them, as `log_chosen` is: the log of the share of its 16-bit peak that the
    best layout of each machine and stack reaches, so that a faster machine is no luckier one.
    `shrink` is measured on such groups: hardware/choices.csv. An expected time or cost is divided
    by the exponential of the correction. Validity: alternatives that somebody would run; bad ones
    would make the lead too large.

    >>> round(float(chosen_correction(log_chosen=-0.7, log_alternatives=np.array([-0.7, -0.9]),
    ...     shrink=0.2)), 6)
    -0.02
    """
    lead = np.asarray(log_chosen) - np.nanmean(log_alternatives, axis=-1)
    return -np.clip(shrink, 0.0, 1.0) * np.maximum(lead, 0.0)


def corrections(found: Choices) -> Numbers:
    """The correction of each group by the shrink of the other publications' groups alone."""
    out = np.zeros(len(found))
    for name in np.unique(found.publication):
        mine = found.publication == name
        others = shrink(own=found.own[~mine], lead=found.lead[~mine])
        out[mine] = -np.clip(others, 0.0, 1.0) * found.lead[mine]
    return out


def estimates(found: Choices, seed: int = 0) -> Mapping[str, Estimate]:
    """The figures of `MEASURES`, none if there is no group.

    Biases are forecast / measured - 1, above 0 too fast: the median over groups of the chosen,
    `own_bias` the mean of what is its own. `_corrected` are the same after `corrections`, which
    have not seen the publication that they correct.
    """
    if not len(found):
        return {}
    fixed = corrections(found)
    of: dict[str, Callable[[NDArray[np.intp]], Numbers]] = {
        "regret_median": lambda i: np.median(found.regret[i], axis=-1),
        "regret_p10": lambda i: np.quantile(found.regret[i], 0.1, axis=-1),
        "best_share": lambda i: np.mean(found.regret[i] >= 1 - EQUAL, axis=-1),
        "bias": lambda i: np.expm1(np.median(found.shortfall[i], axis=-1)),
        "own_bias": lambda i: np.expm1(found.own[i].mean(axis=-1)),
        "lead": lambda i: np.expm1(found.lead[i].mean(axis=-1)),
        "shrink": lambda i: np.asarray(shrink(own=found.own[i], lead=found.lead[i])),
        "bias_corrected": lambda i: np.expm1(np.median((found.shortfall + fixed)[i], axis=-1)),
        "own_bias_corrected": lambda i: np.expm1((found.own + fixed)[i].mean(axis=-1)),
    }
    every = np.arange(len(found))
    again = np.random.default_rng(seed).integers(0, len(found), (SAMPLES, len(found)))
    bounds = {name: np.quantile(figure(again), BOUNDS) for name, figure in of.items()}
    return {
        name: Estimate(value=float(figure(every)), low=float(low), high=float(high))
        for name, figure in of.items()
        for low, high in [bounds[name]]
    }
