"""What measured runs say about the error of the model: its residual at runs that are like them.

The residual of a run, ln(measured / forecast of the model), is a Gaussian process over its traits
[R06]. Runs have it in common as far as they are alike: by family and kind of model, stack and
task, accelerator and number format, and by distance over SCALES, within a stack and beyond. What
one publication measures differently from all others is a nuisance that no forecast uses. A
forecast asks the NEIGHBOURS runs with the highest covariance only, as distant ones add nothing.

Gate: the share of the variance at a run that its neighbours explain. Below GATE the model stays
as it is, so that a run of a stack or machine that is unlike all others is not moved.

What a user's own runs say beyond that: core/evidence/own_runs.py.

Constants: by marginal likelihood on the residuals of hardware/measured_runs.csv, then rounded; the
gate and the share of a publication by folds over whole publications (docs/accuracy.md).

[R06] Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.evidence.measured_runs import (
    SCALES,
    MeasuredRuns,
    Numbers,
    Traits,
    Words,
    same,
    same_user,
)
from core.numeric import one_thread

# Standard deviations of ln(measured / forecast) that runs have in common.
FAMILY_AND_KIND, STACK_AND_TASK, MACHINE = 0.02, 0.073, 0.03
ANYWHERE, IN_STACK, OF_PUBLICATION, SCATTER = 0.065, 0.118, 0.04, 0.045
PUBLICATION_SHARE = 0.4  # of IN_STACK that only runs of one publication have in common
NEIGHBOURS = 32
MOST = 0.4  # a larger residual of a published run counts as this one: rows may be wrong
GATE = (0.1, 0.2)  # explained share from which a shift counts, and counts in full
AT_ONCE = 64  # forecasts: their columns stay in the processor's cache
DECIMALS = 6  # of what is found: the last bits of matrix products differ between machines
NARROWING, LEAST_LEFT = 1.1, 0.1
SMALLEST_SHIFT, MOSTLY = 0.005, 0.8  # of a shift that is named, and of the runs that made it


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What runs say about forecasts, one row a forecast. The neighbours are columns of `at` (row
    numbers of the runs) with their weights."""

    shift: Numbers  # to add to the logarithm of the forecast
    explained: Numbers  # share of the variance that is known after the runs: 0 to 1
    distance: Numbers  # to the nearest run of the stack, else of any; inf without runs
    at: NDArray[np.intp]
    weight: Numbers  # of the residual of each neighbour in `shift`

    @property
    def variance_left(self) -> Numbers:
        """Share of the variance of the forecast's error that remains."""
        return np.maximum(1.0 - NARROWING * self.explained, LEAST_LEFT)

    @classmethod
    def of_parts(cls, parts: Sequence[Self]) -> Self:
        """Several tables, one below the other."""
        names = [f.name for f in fields(cls)]
        return cls(**{n: np.concatenate([getattr(p, n) for p in parts]) for n in names})

    def take(self, rows: NDArray[Any]) -> Self:
        """The chosen forecasts, by mask or by index."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedRun:
    """A published run whose residual moves a forecast."""

    run_id: str
    weight: float  # of its residual in the shift of the log of the throughput
    log_ratio: float  # ln(measured / forecast of the model)
    distance: float  # from the forecast, in units of SCALES

    @property
    def residual(self) -> float:
        """The log ratio as it counts: within MOST."""
        return min(max(self.log_ratio, -MOST), MOST)


@one_thread
def learned(
    of: Traits,
    runs: MeasuredRuns,
    *,
    run_id: Words | None = None,
    publication: Words | None = None,
) -> Learned:
    """The residual of each forecast, from the runs that are most like it.

    A run says nothing about a forecast of its own `run_id`, nor an own run here about one of its
    user's. `publication` says whose each forecast is: own runs of another publication count as
    published. Blank, or None: the same user's.
    """
    blank = np.full(len(of), "")
    names = blank if run_id is None else run_id
    whose = blank if publication is None else publication
    words = (of.family, of.stack, of.accelerator, of.number_format, of.task, names, whose)
    codes = [np.unique(w, return_inverse=True)[1] for w in words]
    table = np.column_stack([*codes, of.experts, of.numbers])
    _, one, back = np.unique(table, axis=0, return_index=True, return_inverse=True)
    parts = [
        _some(of.take(rows), runs, names[rows], whose[rows])
        for rows in np.array_split(one, len(one) // AT_ONCE + 1)
    ]
    return Learned.of_parts(parts).take(back.ravel())


def _some(of: Traits, runs: MeasuredRuns, run_id: Words, whose: Words) -> Learned:
    """Simple kriging of each forecast from the nearest runs that may say something about it."""
    other = ~same(run_id, runs.run_id) | (run_id == "")[:, None]
    use = other & ~(runs.own & same_user(whose, runs.publication))
    most = min(NEIGHBOURS, len(runs))
    squares = _squares(of.numbers, runs.traits.numbers)
    covariance = _common(of, runs.traits, squares)
    at = _largest(np.where(use, covariance, -1.0), most)
    used = np.take_along_axis(use, at, axis=1)
    to_runs = np.where(used, np.take_along_axis(covariance, at, axis=1), 0.0)
    pairs = used[:, :, None] & used[:, None, :]
    among = np.where(pairs, _among(runs, at), 0.0) + SCATTER**2 * np.eye(most)
    weight: Numbers = np.linalg.solve(among, to_runs[:, :, None])[:, :, 0].astype(np.float64)
    residual = _counted(runs)[at]
    explained = np.clip((weight * to_runs).sum(axis=1) / _known(), 0.0, 1.0)
    weight *= np.clip((explained - GATE[0]) / (GATE[1] - GATE[0]), 0.0, 1.0)[:, None]
    apart = np.where(other, squares, np.inf)
    in_stack = np.where(same(of.stack, runs.traits.stack), apart, np.inf)
    nearest = np.sqrt(in_stack.min(axis=1, initial=np.inf))
    nearest_of_any = np.sqrt(apart.min(axis=1, initial=np.inf))
    return Learned(
        shift=np.round((weight * residual).sum(axis=1), DECIMALS),
        explained=np.round(explained, DECIMALS),
        distance=np.round(np.where(np.isfinite(nearest), nearest, nearest_of_any), DECIMALS),
        at=at,
        weight=weight,
    )


def _largest(values: Numbers, most: int) -> NDArray[np.intp]:
    """The columns of the largest values of each row, the largest first; of equal ones the first."""
    if not most:
        return np.zeros((len(values), 0), dtype=np.intp)
    rows = np.arange(len(values))[:, None]
    least = np.partition(values, -most, axis=1)[:, -most, None]
    row, column = np.nonzero(values >= least)  # more than `most` where some are equal to the least
    num = np.bincount(row, minlength=len(values))
    place = np.arange(len(row)) - (np.cumsum(num) - num)[row]
    found = np.zeros((len(values), num.max(initial=most)), dtype=np.intp)
    held = np.full(found.shape, -np.inf)
    found[row, place], held[row, place] = column, values[row, column]
    order = np.argsort(-held, axis=1, kind="stable")[:, :most]
    return found[rows, order]


def _counted(runs: MeasuredRuns) -> Numbers:
    """Residuals as they count: within MOST."""
    return np.clip(runs.log_ratio, -MOST, MOST)


def _among(runs: MeasuredRuns, at: NDArray[np.intp]) -> Numbers:
    """Covariance of the neighbours of each forecast with one another."""
    rows, place = np.unique(at, return_inverse=True)
    place = place.reshape(at.shape)
    some = runs.traits.take(rows)
    publication = runs.publication[rows]
    one = same(publication, publication) & (publication != "")[:, None]
    squares = _squares(some.numbers, some.numbers)
    one_stack = IN_STACK**2 * np.exp(-0.5 * squares) * same(some.stack, some.stack)
    nuisance = OF_PUBLICATION**2 + PUBLICATION_SHARE * one_stack
    common = _common(some, some, squares) + np.where(one, nuisance, 0.0)
    found: Numbers = common[place[:, :, None], place[:, None, :]]
    return found


def _known() -> float:
    """Variance of the residual that other publications may tell."""
    shared = FAMILY_AND_KIND**2 + STACK_AND_TASK**2 + MACHINE**2 + ANYWHERE**2
    return shared + (1 - PUBLICATION_SHARE) * IN_STACK**2


def _common(a: Traits, b: Traits, squares: Numbers) -> Numbers:
    """Covariance of the residuals of runs that do not share their publication; `squares` of
    their distances."""
    words = (a.family, a.stack, a.accelerator, a.number_format, a.task)
    codes = [np.unique(w, return_inverse=True)[1] for w in words]
    _, one, of = np.unique(
        np.column_stack([*codes, a.experts]), axis=0, return_index=True, return_inverse=True
    )
    a = a.take(one)  # rows of equal words have their words in common with the same runs
    stack = same(a.stack, b.stack) & (a.stack != "")[:, None]
    family = same(a.family, b.family) & (a.family != "")[:, None]
    kind = a.experts[:, None] == b.experts
    machine = same(a.accelerator, b.accelerator) & same(a.number_format, b.number_format)
    words_alike = (
        FAMILY_AND_KIND**2 * (family & kind)
        + STACK_AND_TASK**2 * (stack & same(a.task, b.task))
        + MACHINE**2 * (stack & machine & kind)
    )
    numbers_alike = ANYWHERE**2 + (1 - PUBLICATION_SHARE) * IN_STACK**2 * stack
    found: Numbers = np.exp(-0.5 * squares)
    found *= numbers_alike[of.ravel()]
    found += words_alike[of.ravel()]
    return found


def _squares(a: Numbers, b: Numbers) -> Numbers:
    """Squared distance of each pair of rows, in units of SCALES."""
    scale = np.array(list(SCALES.values()))
    a, b = a / scale, b / scale
    products = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.maximum(products, 0.0)


def weighted_runs(
    said: Learned, of: Traits, runs: MeasuredRuns, row: int
) -> tuple[WeightedRun, ...]:
    """Runs that move one forecast, the largest weight first.

    Weights times residuals add up to the shift of the forecast, which has DECIMALS.
    """
    weight = np.round(said.weight[row], 12)  # the last bits differ between machines
    order = np.argsort(-np.abs(weight), kind="stable")[: np.count_nonzero(weight)]
    at = said.at[row][order]
    distance = np.sqrt(_squares(of.numbers[[row]], runs.traits.numbers[at])[0])
    columns = (weight[order], runs.log_ratio[at], np.round(distance, DECIMALS))
    return tuple(
        WeightedRun(run_id=run_id, weight=w, log_ratio=r, distance=d)
        for run_id, w, r, d in zip(
            runs.run_id[at].tolist(), *(c.tolist() for c in columns), strict=True
        )
    )


def sentence(said: Learned, runs: MeasuredRuns, row: int) -> str:
    """How far measured runs moved one forecast, by how many of which, and how near they are.

    The runs that count are the fewest whose shares make up most of the shift.
    """
    shift, at = float(said.shift[row]), said.at[row]
    if abs(shift) < SMALLEST_SHIFT:
        if not np.isfinite(said.distance[row]):
            return "No measured run to compare with."
        return f"Not moved: the nearest measured run is {said.distance[row]:.1f} away."
    share = said.weight[row] * _counted(runs)[at] * np.sign(shift)
    order = np.argsort(-share, kind="stable")
    reached = np.cumsum(share[order]) >= MOSTLY * abs(shift)
    used = at[order[: int(np.argmax(reached)) + 1]]
    first = used[0]
    t = runs.traits
    alike = (t.stack[used] == t.stack[first]) & (t.accelerator[used] == t.accelerator[first])
    stack = f" of {t.stack[first]}" if t.stack[first] else ""
    which = f"{stack} on {t.accelerator[first]}{'' if alike.all() else ' and others'}"
    plural = "s" if len(used) > 1 else ""
    return (
        f"Moved {np.expm1(shift):+.0%} by {len(used)} measured run{plural}{which}; the nearest is "
        f"{said.distance[row]:.1f} away."
    )
