"""How near a forecast comes by what is known: a stack never seen, one known, one's own machine.

Two of these are folds of fit.py as they stand: unknown_stack, of which nothing is known, and
newest, the newest six months by a fit to all that is older. Two are made of the folds by
publication:

- known_stack: the rows whose stack is in a publication of another fold, too;
- measured_once: after one other run of the same source, stack, release, accelerator, model, task
  and precision was given as one's own measurement. Each such run is given in turn, and what a
  forecast makes of it is core/evidence/anchor.py, as in a plan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.accuracy.fit import NEW_SOURCE, Outcome
from app.accuracy.fit_columns import Numbers, folds
from app.accuracy.section_scores import Texts, joined
from app.forecast.anchor import ALIKE
from core.evidence.accuracy import Accuracy, scored
from core.evidence.anchor import anchored
from hardware.measured import RunInputs

RowNumbers = NDArray[np.intp]
ONE_MACHINE = (
    "source", "framework", "framework_version", "accelerator", "model_key", "task", "precision"
)  # fmt: skip


def closeness(outcome: Outcome, inputs: RunInputs) -> Iterator[tuple[str, Accuracy, int]]:
    """The errors of known stacks and of machines measured once, with the number of runs forecast,
    however many measurements each had. `inputs` are of the sample's rows."""
    sample = outcome.sample
    fold = folds(sample.publication, NEW_SOURCE)
    known = np.array([
        stack != "" and bool(((sample.stack == stack) & (fold != own)).any())
        for stack, own in zip(sample.stack, fold, strict=True)
    ])  # fmt: skip
    rows = np.flatnonzero(known)
    yield "known_stack", _scored(outcome, rows, outcome.new_source[rows]), len(rows)
    target, anchor = _pairs(inputs, sample.configuration)
    after = _scored(outcome, target, _moved(outcome, target, anchor))
    yield "measured_once", after, len(np.unique(target))


def _pairs(inputs: RunInputs, configuration: Texts) -> tuple[RowNumbers, RowNumbers]:
    """Row numbers of each run and of each other configuration measured on its machine."""
    machine = joined(*(np.asarray(getattr(inputs, name), dtype=np.str_) for name in ONE_MACHINE))
    _, which = np.unique(machine, return_inverse=True)
    _, own = np.unique(configuration, return_inverse=True)
    target, anchor = np.nonzero((which[:, None] == which) & (own[:, None] != own))
    return target, anchor


def _moved(outcome: Outcome, target: RowNumbers, anchor: RowNumbers) -> Numbers:
    """Log forecasts of the targets after their anchors were measured."""
    sample, columns = outcome.sample, outcome.sample.columns
    layouts = [np.asarray(getattr(columns.layouts, name)) for name in ALIKE]
    left = np.sqrt(outcome.left["new_source"])
    sigma = np.asarray(columns.efficiency.throughput_sigma) * left
    gpus = np.asarray(columns.layouts.num_gpus)
    shift, _ = anchored(
        predicted_anchor=np.exp(outcome.new_source[anchor]),
        measured=np.exp(sample.log_measured[anchor]),
        sigma_shared=sigma[anchor],
        sigma_own=0.0,
        same_accelerator=np.ones(len(target), dtype=bool),
        same_model=np.ones(len(target), dtype=bool),
        same_layout=np.all([column[target] == column[anchor] for column in layouts], axis=0),
        same_num_gpus=gpus[target] == gpus[anchor],
    )
    return outcome.new_source[target] + shift


def _scored(outcome: Outcome, rows: RowNumbers, log_predicted: Numbers) -> Accuracy:
    sample = outcome.sample
    return scored(
        predicted=np.exp(log_predicted),
        measured=np.exp(sample.log_measured[rows]),
        refused=np.zeros(len(rows), dtype=bool),
        configuration=sample.configuration[rows],
    )
