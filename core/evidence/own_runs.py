"""What runs that a user measured say about what the same user forecasts.

What published runs (core/evidence/residual.py) leave of the error of a forecast is, for one user, a
Gaussian process over the same traits [R06], of variance 1 in units of the variance left. It changes
with the work of one GPU, and hardly with how many GPUs or micro-batches there are: WEIGHTS. Runs of
another stack or task say nothing. A layout that the user left open was found by a search, and
counts with OPEN_LAYOUT. A forecast asks the NEIGHBOURS nearest runs.

Constants: by hand on a grid, on the residuals of folds that left whole publications out, pairs of
runs of one machine (median / P90 / within 20%): nothing measured 7.3 / 22.3 / 86.3, one run
3.0 / 16.5 / 92.9, with its layout left open 6.3 / 20.2 / 89.9; chosen by nested folds over
publications 2.9 to 3.2 / 16.6 to 16.7 / 92.7 to 92.8 (docs/accuracy.md).

[R06] Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, chapter 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.errors import ScenarioError
from core.evidence.measured_runs import (
    SCALES,
    MeasuredRuns,
    Numbers,
    Traits,
    Words,
    same,
    same_user,
)
from core.evidence.residual import DECIMALS, NEIGHBOURS, learned
from core.numeric import one_thread

HIGHEST_MFU = 1.0  # of the fastest peak that the accelerator has
# Traits that count otherwise than over the SCALES of published runs: by how much more or less.
WEIGHTS = {
    "micro_batch_tokens": 2.8, "tp": 2.8, "pp": 2.8, "seq_len": 2.0, "num_gpus": 0.25,
    "num_microbatches": 0.25, "cp": 0.25, "ep": 0.25, "recompute": 0.25, "virtual_stages": 0.25,
}  # fmt: skip
OF_MACHINE, OTHER_MACHINE = 0.05, 0.8  # share at any distance; of the rest on another accelerator
# Standard deviations of an own run's error that no other run shares, in units of the error left:
# what repeats and releases scatter by, and how far the layout found is from the one that ran.
SCATTER, OPEN_LAYOUT = 0.2, 0.7
LEAST_LEFT = 0.08  # of the variance of a forecast after any number of runs
AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRuns:
    """Runs of a user. Publications are '' for the same user's as every forecast."""

    run_id: Words
    publication: Words
    traits: Traits
    log_left: Numbers  # ln(measured / forecast with what published runs say)
    open_layout: NDArray[np.bool_]  # the layout was found by a search

    def __len__(self) -> int:
        return len(self.run_id)

    @classmethod
    def among(cls, runs: MeasuredRuns) -> Self:
        """The own ones among runs, with the error that the published ones leave."""
        own = runs.take(runs.own)
        left = own.log_ratio
        if len(own):
            of = learned(own.traits, runs, run_id=own.run_id, publication=own.publication)
            left = left - of.shift
        return cls(
            run_id=own.run_id,
            publication=own.publication,
            traits=own.traits,
            log_left=left,
            open_layout=np.zeros(len(own), dtype=bool),
        )


@one_thread
def said_by_own(
    of: Traits,
    runs: OwnRuns,
    *,
    run_id: Words | None = None,
    publication: Words | None = None,
) -> tuple[Numbers, Numbers]:
    """What to add to the log of each forecast, and the share of its variance that remains.

    A run says nothing about a forecast of its own `run_id` nor about one of another user's
    `publication`. Blank, or None: the same user's.
    """
    shift, left = np.zeros(len(of)), np.ones(len(of))
    if not len(runs):
        return shift, left
    blank = np.full(len(of), "")
    names = blank if run_id is None else run_id
    whose = blank if publication is None else publication
    use = same_user(whose, runs.publication) & ~(same(names, runs.run_id) & (names != "")[:, None])
    for rows in np.array_split(np.arange(len(of)), len(of) // AT_ONCE + 1):
        shift[rows], left[rows] = _some(of.take(rows), runs, use[rows])
    return np.round(shift, DECIMALS), np.round(left, DECIMALS)


def _some(of: Traits, runs: OwnRuns, use: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    most = min(NEIGHBOURS, len(runs))
    to_all = np.where(use, _correlation(of, runs.traits), 0.0)
    at = np.argsort(-to_all, axis=1, kind="stable")[:, :most]
    to_runs = np.take_along_axis(to_all, at, axis=1)
    rows, place = np.unique(at, return_inverse=True)
    place = place.reshape(at.shape)
    some = runs.traits.take(rows)
    among = _correlation(some, some)[place[:, :, None], place[:, None, :]]
    scatter = np.where(runs.open_layout[at], OPEN_LAYOUT, SCATTER) ** 2
    among = among + scatter[:, :, None] * np.eye(most)
    used = to_runs > 0
    among = np.where(used[:, :, None] & used[:, None, :], among, np.eye(most))
    weight: Numbers = np.linalg.solve(among, to_runs[:, :, None])[:, :, 0]
    explained = (weight * to_runs).sum(axis=1)
    shift: Numbers = (weight * runs.log_left[at]).sum(axis=1)
    return shift, np.maximum(1.0 - explained, LEAST_LEFT)


def _correlation(a: Traits, b: Traits) -> Numbers:
    """Correlation of the errors of two runs of one user."""
    scale = np.array([WEIGHTS.get(name, 1.0) / SCALES[name] for name in SCALES])
    x, y = a.numbers * scale, b.numbers * scale
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T
    alike = (1.0 - OF_MACHINE) * np.exp(-0.5 * np.maximum(squares, 0.0))
    machine = same(a.accelerator, b.accelerator)
    found: Numbers = np.where(machine, OF_MACHINE + alike, OTHER_MACHINE * alike)
    return found * (same(a.stack, b.stack) & same(a.task, b.task))


def check_measured(
    *, tokens_per_s_per_gpu: float, flops_per_token: float, fastest_flops_per_s: float
) -> None:
    """Refuse a measurement that the accelerator cannot reach: ScenarioError.

    `flops_per_token` are the model FLOPs of training (with frozen weights, the caller's reduced
    count); `fastest_flops_per_s` is the highest dense peak that the accelerator has.
    """
    mfu = tokens_per_s_per_gpu * flops_per_token / fastest_flops_per_s
    if mfu > HIGHEST_MFU:
        most = fastest_flops_per_s / flops_per_token
        raise ScenarioError(
            f"anchor_tokens_per_s_per_gpu={tokens_per_s_per_gpu:,.6g} is {mfu:.3g} times what the "
            f"fastest arithmetic of this accelerator allows: at most {most:,.3g} tokens/s per GPU; "
            "tokens/s of the whole job must be divided by its GPUs."
        )
