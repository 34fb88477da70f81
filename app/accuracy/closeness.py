"""How near a forecast comes by what is known: a stack never seen, one known, one's own machine.

Two of these are folds of fit.py as they stand: unknown_stack, of which nothing is known, and
newest, the newest six months by a fit to all that is older. Two are made of the folds by
publication:

- known_stack: the rows whose stack is in a publication of another fold, too;
- measured_once: after one other run of the same source, stack, release, accelerator, model, task
  and precision was given as one's own measurement. Each such run is given in turn, and what a
  forecast makes of it is core/evidence/own_runs.py, as in a plan.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.accuracy.fit_columns import Numbers, folds
from app.accuracy.fit_left_out import NEW_SOURCE, Outcome
from app.accuracy.predict import traits_of
from app.accuracy.section_scores import Texts, joined
from core.evidence.accuracy import Accuracy, scored
from core.evidence.own_runs import OwnRuns, said_by_own
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
    after = _scored(outcome, target, _moved(outcome, inputs, target, anchor))
    yield "measured_once", after, len(np.unique(target))


def _pairs(inputs: RunInputs, configuration: Texts) -> tuple[RowNumbers, RowNumbers]:
    """Row numbers of each run and of each other configuration measured on its machine."""
    machine = joined(*(np.asarray(getattr(inputs, name), dtype=np.str_) for name in ONE_MACHINE))
    _, which = np.unique(machine, return_inverse=True)
    _, own = np.unique(configuration, return_inverse=True)
    target, anchor = np.nonzero((which[:, None] == which) & (own[:, None] != own))
    return target, anchor


def _moved(outcome: Outcome, inputs: RunInputs, target: RowNumbers, anchor: RowNumbers) -> Numbers:
    """Log forecasts of the targets after their anchors were measured."""
    traits = traits_of(inputs, outcome.sample.columns)
    forecast, blank = outcome.new_source, np.array([""])
    moved = forecast[target]
    for one in np.unique(anchor):
        run = OwnRuns(
            run_id=blank,
            publication=blank,
            traits=traits.take(np.array([one])),
            log_left=np.array([outcome.sample.log_measured[one] - forecast[one]]),
            open_layout=np.array([False]),
        )
        of = anchor == one
        moved[of] += said_by_own(traits.take(target[of]), run)[0]
    return moved


def _scored(outcome: Outcome, rows: RowNumbers, log_predicted: Numbers) -> Accuracy:
    sample = outcome.sample
    return scored(
        predicted=np.exp(log_predicted),
        measured=np.exp(sample.log_measured[rows]),
        refused=np.zeros(len(rows), dtype=bool),
        configuration=sample.configuration[rows],
    )
