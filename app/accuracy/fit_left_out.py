"""Forecasts of shipped runs by fits that left them out.

Ways of splitting the runs into folds:

- grouped: 5 folds; runs with one source, model and accelerator stay together;
- new_source: 6 folds; runs of one publication (a repository or paper, all versions) stay together;
- new_stack: one fold per family of stacks, whose fractions are those of an unknown stack;
- unknown_stack: the same folds, with nothing known of the stack: its habits are not, either;
- new_accelerator: one fold per accelerator;
- newest: the runs of the newest six months, by one fit to all that were published before.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.accuracy import fit_columns as fc
from app.accuracy.fit_columns import Numbers, Sample
from app.accuracy.fit_values import KINDS, fit_of, parameters_of, with_values
from app.accuracy.predict import measured_runs
from core.evidence.fitting import Fit
from core.evidence.measured_runs import MeasuredRuns
from core.evidence.residual import learned
from hardware.efficiency import Entry, profiles
from hardware.measured import RUNS_CSV

GROUPED, NEW_SOURCE = 5, 6  # folds
Label = Callable[[Sample], NDArray[Any]]  # rows with equal labels stay in one fold
LABELS: dict[str, Label] = {
    "fold of group": lambda s: fc.folds(s.group, GROUPED),
    "fold of publication": lambda s: fc.folds(s.publication, NEW_SOURCE),
    "family": lambda s: s.family,
    "accelerator": lambda s: s.accelerator,
    "newest": lambda s: s.newest,
}
IN_ORDER = ("throughput", "memory")  # the samples of fit_columns.samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Log forecasts of one kind for each row of its sample, throughput with what the runs that its
    fit had seen say about it (core/evidence/residual.py).

    All except `fitted` come from fits that left the row out.
    """

    sample: Sample
    fitted: Numbers
    grouped: Numbers
    new_source: Numbers
    new_stack: Numbers
    unknown_stack: Numbers
    new_accelerator: Numbers
    newest: Numbers  # NaN for rows of the past
    left: Mapping[str, Numbers]  # split -> share of the variance left by runs like each row
    found: Fit


def outcome_of(
    sample: Sample, entries: list[Entry], kind: str, fits: FromPriors, only: Collection[str]
) -> Outcome:
    """The fit of one kind and what fits say of the rows that they left out, in the splits `only`;
    in all of them if it names none."""
    parameters = parameters_of(entries, kind)
    of = fc.model(sample, entries, parameters, KINDS[kind])
    found = fit_of(sample, entries, kind)
    unseen = partial(_unseen, sample, kind, fits)
    everything = np.full(len(sample.weight), True)
    left_out = {
        "grouped": partial(unseen, "fold of group"),
        "new_source": partial(unseen, "fold of publication"),
        "new_stack": partial(unseen, "family", as_strangers=True),
        "unknown_stack": partial(unseen, "family", unnamed=True),
        "new_accelerator": partial(unseen, "accelerator"),
        "newest": partial(unseen, "newest", only=True),
    }
    no_forecast = np.full(len(sample.weight), np.nan), np.ones(len(sample.weight))
    splits = {
        "fitted": _moved(sample, kind, of(found.value[None])[0], everything),
        **{
            name: forecast() if not only or name in only else no_forecast
            for name, forecast in left_out.items()
        },
    }
    return Outcome(
        sample=sample,
        **{name: forecast for name, (forecast, _) in splits.items()},
        left={name: left for name, (_, left) in splits.items()},
        found=found,
    )


class FromPriors:
    """The fits that start from the priors. Those that leave rows out are made once: several
    forecasts of such rows need the same one."""

    def __init__(self, priors: list[Entry], today: dt.date) -> None:
        self.priors, self.today = priors, today
        self.sample = fc.memory_sample(profiles(priors))
        self.memory_without, self.without = cache(self._memory_without), cache(self._without)
        self.memory_of_all = cache(self.memory_fitted)

    def memory_fitted(
        self, label: Label | None = None, key: object = None
    ) -> tuple[list[Entry], Sample, Sample]:
        """The table with fitted memory values, and the samples inferred with them.

        The memory model decides what is inferred where a run leaves a setting blank, so the samples
        are rebuilt after the fit. If a key is given, its rows are left out of the fit.
        """
        table = self._with_memory(self.priors, self.sample, label, key)
        table = self._with_memory(table, fc.memory_sample(profiles(table)), label, key)
        return table, *fc.samples(profiles(table))

    def _with_memory(
        self, table: list[Entry], sample: Sample, label: Label | None, key: object
    ) -> list[Entry]:
        """The table with memory values fitted to a sample."""
        left_out = None if label is None else label(sample) == key
        found = fit_of(sample, table, "memory", left_out)
        return with_values(table, "memory", sample, found, self.today)

    def _memory_without(self, label: str, key: object) -> tuple[list[Entry], Sample, Sample]:
        if not np.any(LABELS[label](self.sample) == key):  # throughput alone was measured
            return self.memory_of_all()
        return self.memory_fitted(LABELS[label], key)

    def _without(self, kind: str, label: str, key: object) -> tuple[list[Entry], Sample, Fit]:
        """The table, the sample and the fit of one kind without the rows that have this key."""
        table, *both = self.memory_without(label, key)
        sample = both[IN_ORDER.index(kind)]
        return table, sample, fit_of(sample, table, kind, left_out=LABELS[label](sample) == key)


def _unseen(
    whole: Sample, kind: str, fits: FromPriors, label: str, *,
    as_strangers: bool = False, unnamed: bool = False, only: object = None,
) -> tuple[Numbers, Numbers]:  # fmt: skip
    """Forecast each row by fits (of memory too) that left out all rows with its label; and the
    share of the variance that the rows of its fit leave.

    With `as_strangers`, held-out rows get the generic values, as an unknown stack would; with
    `unnamed`, what a blank in the rows means is no more that of their stack, either. With `only`,
    no other label is left out, and the rows of the others are NaN.
    """
    out, left = np.full(len(whole.weight), np.nan), np.ones(len(whole.weight))
    for key in np.unique(LABELS[label](whole)) if only is None else [only]:
        table, sample, one = fits.without(kind, label, key)
        mine = LABELS[label](sample) == key
        if unnamed:
            of = fc.model(sample, table, parameters_of(table, kind), KINDS[kind])
            known = of(one.value[None])[0]
            table = with_values(table, kind, sample, one, fits.today)
            other = fc.samples(profiles(table), sample.rows[mine])[IN_ORDER.index(kind)]
            hidden = np.log(KINDS[kind](other.columns))
            sample = replace(other, log_measured=sample.log_measured)
            known[mine] = hidden[mine]
            out[mine], left[mine] = _moved(sample, kind, known, mine, named=False)
            continue
        if as_strangers:
            sample = fc.strangers(sample, mine, profiles(table))
        of = fc.model(sample, table, parameters_of(table, kind), KINDS[kind])
        out[mine], left[mine] = _moved(sample, kind, of(one.value[None])[0], mine)
    return out, left


def _moved(
    sample: Sample,
    kind: str,
    log_predicted: Numbers,
    mine: NDArray[np.bool_],
    *,
    named: bool = True,
) -> tuple[Numbers, Numbers]:
    """The log forecasts of the rows `mine` with what the others say about them, and the share of
    the variance left; all rows `mine`: what every row but itself says."""
    if kind == "memory":
        return log_predicted[mine], np.ones(int(mine.sum()))
    runs = residual_rows(sample, log_predicted)
    of = runs.traits.take(mine)
    if not named:
        of = replace(of, stack=np.full(len(of), ""), family=np.full(len(of), ""))
    said = learned(of, runs if mine.all() else runs.take(~mine), run_id=runs.run_id[mine])
    return log_predicted[mine] + said.shift, said.variance_left


def residual_rows(sample: Sample, log_predicted: Numbers) -> MeasuredRuns:
    """The rows of throughput with their residuals from the model alone."""
    inputs = fc.runs_in(RUNS_CSV).inputs.rows(sample.rows)
    return measured_runs(inputs, sample.columns, sample.log_measured - log_predicted)
