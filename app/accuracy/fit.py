"""`make fit`: fit the fractions of hardware/efficiency.csv to the shipped runs, from priors.

Memory is fitted first, because it decides what is inferred where runs do not state recompute or
degrees. Throughput follows, then the widths of the intervals, on held-out forecasts. Every fit
starts from the priors. Ways of splitting the runs into folds:

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
from app.accuracy import fit_kernels
from app.accuracy.fit_columns import Numbers, Sample
from app.accuracy.predict import (
    circumstances_of,
    measured_runs,
    reported_memory_bytes,
    tokens_per_s_per_gpu,
)
from app.accuracy.runs.columns import Columns
from core.evidence.fitting import Fit, fit, fit_widths
from core.evidence.measured_runs import MeasuredRuns
from core.evidence.residual import learned
from core.evidence.uncertainty import Circumstances, memory_terms, throughput_terms, unknown
from core.numeric import Z_90, Numeric
from hardware.efficiency import GENERIC, Entry, profiles
from hardware.measured import RUNS_CSV
from hardware.residuals.blind import blind_runs

GROUPED, NEW_SOURCE = 5, 6  # folds
Label = Callable[[Sample], NDArray[Any]]  # rows with equal labels stay in one fold
LABELS: dict[str, Label] = {
    "fold of group": lambda s: fc.folds(s.group, GROUPED),
    "fold of publication": lambda s: fc.folds(s.publication, NEW_SOURCE),
    "family": lambda s: s.family,
    "accelerator": lambda s: s.accelerator,
    "newest": lambda s: s.newest,
}
# Rows of one publication err alike, so that many of them say less of the next one: the n
# configurations of a publication weigh n^(1 - this) together. Read by eye from the interval score
# of unseen rows.
ALIKE = {"throughput intervals": 0.25, "memory intervals": 0.0}
SKEWED = {"throughput intervals": "throughput skew"}  # memory errs alike to both sides
# Weight of all blind forecasts over that of all folds in the fit of widths: folds flatter, and
# blind rows hold mistakes of reading that no forecast can know.
BLIND_SHARE = 0.5
IN_ORDER = ("throughput", "memory")  # the samples of fit_columns.samples
KINDS: dict[str, Callable[[Columns], Numbers]] = {
    "throughput": tokens_per_s_per_gpu,
    "memory": reported_memory_bytes,
}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The new table with the outcomes that it was fitted on."""

    entries: list[Entry]
    throughput: Outcome
    memory: Outcome


def refit(entries: list[Entry], today: dt.date, *, only: Collection[str] = ()) -> Result:
    """Fit all values, starting from the priors of `entries`. `only`: the splits in which rows are
    left out; forecasts of the others are NaN. All of them if it names none."""
    begin = _Begin([at_prior(e) for e in entries], today)
    entries, throughput, memory = begin.memory_of_all()
    of_memory = _outcome(memory, entries, "memory", begin, only)
    of_throughput = _outcome(throughput, entries, "throughput", begin, only)
    entries = _with(entries, "throughput", throughput, of_throughput.found, today)
    fitted, _ = fc.samples(profiles(entries))
    known = circumstances_of(fitted.columns)
    kinds = (
        (of_throughput, throughput_terms, "throughput intervals", known),
        (of_memory, memory_terms, "memory intervals", memory.columns.circumstances),
    )
    for outcome, terms, fits, circumstances in kinds:
        entries = _with_widths(entries, outcome, terms, fits, circumstances, today)
    return Result(entries=entries, throughput=of_throughput, memory=of_memory)


class _Begin:
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
        found = _fit(sample, table, "memory", left_out)
        return _with(table, "memory", sample, found, self.today)

    def _memory_without(self, label: str, key: object) -> tuple[list[Entry], Sample, Sample]:
        if not np.any(LABELS[label](self.sample) == key):  # throughput alone was measured
            return self.memory_of_all()
        return self.memory_fitted(LABELS[label], key)

    def _without(self, kind: str, label: str, key: object) -> tuple[list[Entry], Sample, Fit]:
        """The table, the sample and the fit of one kind without the rows that have this key."""
        table, *both = self.memory_without(label, key)
        sample = both[IN_ORDER.index(kind)]
        return table, sample, _fit(sample, table, kind, left_out=LABELS[label](sample) == key)


def at_prior(entry: Entry) -> Entry:
    """The entry at its prior, before any fit."""
    if entry.prior is None:
        return entry
    return replace(entry, value=entry.prior, p10=None, p90=None)


def _parameters(entries: list[Entry], kind: str) -> list[Entry]:
    return [e for e in entries if e.fits == kind and e.prior_sigma > 0]


def _fit(
    sample: Sample, entries: list[Entry], kind: str, left_out: NDArray[np.bool_] | None = None
) -> Fit:
    parameters = _parameters(entries, kind)
    weight = sample.weight if left_out is None else np.where(left_out, 0.0, sample.weight)
    runs = fc.model(sample, entries, parameters, KINDS[kind])
    if kind == "memory":
        measured, source, of_all = sample.log_measured, sample.source, runs
    else:
        kernels = fc.kernels_model(entries, parameters)
        alone = fit_kernels.log_measured()
        measured = np.concatenate([sample.log_measured, alone])
        weight = np.concatenate([weight, np.full(len(alone), fit_kernels.WEIGHT)])
        source = np.concatenate([sample.source, np.full(len(alone), "kernels")])

        def of_all(values: Numbers) -> Numbers:
            return np.concatenate([runs(values), kernels(values)], axis=1)

    return fit(
        of_all,
        measured=measured,
        weight=weight,
        source=np.unique(source, return_inverse=True)[1],
        priors=fc.priors(parameters),
        acts_on=fc.acts_on(sample, parameters, others=len(measured) - len(sample.weight)),
    )


def _outcome(
    sample: Sample, entries: list[Entry], kind: str, begin: _Begin, only: Collection[str]
) -> Outcome:
    parameters = _parameters(entries, kind)
    of = fc.model(sample, entries, parameters, KINDS[kind])
    found = _fit(sample, entries, kind)
    unseen = partial(_unseen, sample, kind, begin)
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


def shipped_residuals(result: Result) -> MeasuredRuns:
    """The residuals that ship with the fitted table."""
    sample, _ = fc.samples(profiles(result.entries))
    return residual_rows(sample, np.log(tokens_per_s_per_gpu(sample.columns)))


def residual_rows(sample: Sample, log_predicted: Numbers) -> MeasuredRuns:
    """The rows of throughput with their residuals from the model alone."""
    inputs = fc.runs_in(RUNS_CSV).inputs.rows(sample.rows)
    return measured_runs(inputs, sample.columns, sample.log_measured - log_predicted)


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


def _unseen(
    whole: Sample, kind: str, begin: _Begin, label: str, *,
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
        table, sample, one = begin.without(kind, label, key)
        mine = LABELS[label](sample) == key
        if unnamed:
            of = fc.model(sample, table, _parameters(table, kind), KINDS[kind])
            known = of(one.value[None])[0]
            table = _with(table, kind, sample, one, begin.today)
            other = fc.samples(profiles(table), sample.rows[mine])[IN_ORDER.index(kind)]
            hidden = np.log(KINDS[kind](other.columns))
            sample = replace(other, log_measured=sample.log_measured)
            known[mine] = hidden[mine]
            out[mine], left[mine] = _moved(sample, kind, known, mine, named=False)
            continue
        if as_strangers:
            sample = fc.strangers(sample, mine, profiles(table))
        of = fc.model(sample, table, _parameters(table, kind), KINDS[kind])
        out[mine], left[mine] = _moved(sample, kind, of(one.value[None])[0], mine)
    return out, left


def _with(
    entries: list[Entry], kind: str, sample: Sample, found: Fit, today: dt.date
) -> list[Entry]:
    """The table with the fitted values of one kind filled in."""
    parameters = _parameters(entries, kind)
    values = fc.fitted_values(entries, parameters, found.value)
    basis = f"fitted: {len(sample.weight)} {kind} rows of hardware/measured_runs.csv"
    new = [
        replace(
            e,
            value=v,
            p10=max(v - Z_90 * s, e.low),
            p90=min(v + Z_90 * s, e.high),
            basis=basis,
            date=today.isoformat(),
        )
        for e, v, s in zip(parameters, values, found.sigma, strict=True)
    ]
    return _updated(entries, new)


def _updated(entries: list[Entry], new: list[Entry]) -> list[Entry]:
    """The table with these entries in place of those of the same stack and quantity."""
    by_name = {(e.stack, e.quantity): e for e in new}
    return [by_name.get((e.stack, e.quantity), e) for e in entries]


def _with_widths(
    entries: list[Entry],
    outcome: Outcome,
    terms: Callable[[Circumstances], dict[str, Numeric]],
    fits: str,
    known: Circumstances,
    today: dt.date,
) -> list[Entry]:
    """The table with the interval widths that score best on held-out rows."""
    sample = outcome.sample
    n = len(sample.weight)
    unseen = replace(known, unseen_accelerator=np.ones(n))
    marks = {
        "grouped": known, "new_source": known, "unknown_stack": unknown(known),
        "new_accelerator": unseen, "newest": known,
    }  # fmt: skip
    scored = np.concatenate([np.isfinite(getattr(outcome, split)) for split in marks])
    residual = np.concatenate([sample.log_measured - getattr(outcome, split) for split in marks])
    of_row = sample.weight * _publication_weight(sample, ALIKE[fits])
    weight = np.concatenate([v * of_row for v in (0.5, 1.5, 0.5, 0.5, 1.0)])
    residual, weight = residual[scored], weight[scored]
    columns = {
        name: np.concatenate(
            [terms(m)[name] * np.sqrt(outcome.left[split]) for split, m in marks.items()]
        )[scored]
        for name in terms(known)
    }
    families = np.concatenate(
        [np.full(n, "") if split == "unknown_stack" else sample.family for split in marks]
    )[scored]
    if terms is throughput_terms:
        # What near runs say of them is what those of other publications do.
        of_blind, missed = _blind(sample)
        share = of_row[of_blind]
        residual = np.concatenate([residual, missed])
        weight = np.concatenate([weight, BLIND_SHARE * share * weight.sum() / share.sum()])
        left = np.sqrt(outcome.left["new_source"][of_blind])
        columns = {
            name: np.concatenate([column, np.asarray(terms(known)[name])[of_blind] * left])
            for name, column in columns.items()
        }
        families = np.concatenate([families, sample.family[of_blind]])
    widths = [e for e in entries if e.fits == fits]
    matrix = np.zeros((len(residual), len(widths)))
    for j, e in enumerate(widths):
        with_own = [w.stack for w in widths if w.quantity == e.quantity]
        mine = ~np.isin(families, with_own) if e.stack == GENERIC else families == e.stack
        matrix[:, j] = np.where(mine, columns[e.quantity], 0.0)
    skews = [e for e in entries if e.fits == SKEWED.get(fits)]
    found, skew = fit_widths(
        residual, matrix, weight,
        low=np.array([e.low for e in widths]), high=np.array([e.high for e in widths]),
        most_skew=max((e.high for e in skews), default=0.0),
    )  # fmt: skip
    basis = f"fitted: 80% of {len(residual)} unseen forecasts of hardware/measured_runs.csv inside"
    date = today.isoformat()
    return _updated(
        entries,
        [
            replace(e, value=float(v), basis=basis, date=date)
            for e, v in (*zip(widths, found, strict=True), *((e, skew) for e in skews))
        ],
    )


def _blind(sample: Sample) -> tuple[NDArray[np.intp], Numbers]:
    """The rows of the sample that were forecast blind, and ln(measured / forecast) of then."""
    runs = blind_runs()
    place = {name: n for n, name in enumerate(fc.runs_in(RUNS_CSV).inputs.run_id[sample.rows])}
    found = [(place[name], n) for n, name in enumerate(runs.run_id) if name in place]
    at, which = (np.array(column, dtype=np.intp) for column in zip(*found, strict=True))
    return at, runs.log_ratio[which]


def _publication_weight(sample: Sample, alike: float) -> Numbers:
    """Weight of each row by how many configurations its publication has."""
    _, which = np.unique(sample.publication, return_inverse=True)
    return np.asarray(np.bincount(which, sample.weight)[which] ** -alike, dtype=np.float64)
