"""`make fit`: the fractions of hardware/efficiency.csv, from priors and the shipped runs.

Memory first: it settles what runs leave unsaid (recompute, degrees). Then throughput, then the
widths of the intervals, on forecasts of runs that their fit had not seen. Every fit starts at
the priors. Folds:

- grouped: 5, no source, model and accelerator in common with the rest;
- new_source: 6, no publication in common (a repository or paper, all versions);
- new_stack: one a family of stacks, forecast as an unknown stack;
- new_accelerator: one an accelerator.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app import fit_columns as fc
from app import fit_kernels
from app.fit_columns import Labels, Numbers, Sample
from app.predict import reported_memory_bytes, tokens_per_s_per_gpu
from app.run_columns import Columns
from core.fitting import Fit, fit, fit_widths
from core.numeric import Numeric
from core.uncertainty import Z_90, Circumstances, memory_terms, throughput_terms, unknown
from hardware.efficiency import GENERIC, Entry, profiles

GROUPED, NEW_SOURCE = 5, 6  # folds
KINDS: dict[str, Callable[[Columns], Numbers]] = {
    "throughput": tokens_per_s_per_gpu,
    "memory": reported_memory_bytes,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Log forecasts of one kind by rows of its sample; each row's by a fit that had not seen it,
    but for `fitted`."""

    sample: Sample
    fitted: Numbers
    grouped: Numbers
    new_source: Numbers
    new_stack: Numbers
    new_accelerator: Numbers
    found: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The new table and what it rests on."""

    entries: list[Entry]
    throughput: Outcome
    memory: Outcome


def refit(entries: list[Entry], today: dt.date) -> Result:
    """Fit everything from the priors of `entries`."""
    entries = [at_prior(e) for e in entries]
    for _ in range(2):  # what is inferred of a run depends on its memory, and the fit on that
        _, sample = fc.samples(profiles(entries))
        entries = _with(entries, "memory", sample, _fit(sample, entries, "memory"), today)
    throughput, memory = fc.samples(profiles(entries))
    of_memory = _outcome(memory, entries, "memory")
    of_throughput = _outcome(throughput, entries, "throughput")
    entries = _with(entries, "throughput", throughput, of_throughput.found, today)
    entries = _with_widths(entries, of_throughput, throughput_terms, "throughput intervals", today)
    entries = _with_widths(entries, of_memory, memory_terms, "memory intervals", today)
    return Result(entries=entries, throughput=of_throughput, memory=of_memory)


def at_prior(entry: Entry) -> Entry:
    """The entry as it was believed before any run was looked at."""
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
    )


def _outcome(sample: Sample, entries: list[Entry], kind: str) -> Outcome:
    parameters = _parameters(entries, kind)
    of = fc.model(sample, entries, parameters, KINDS[kind])
    found = _fit(sample, entries, kind)

    def unseen(keys: Labels, number: int) -> Numbers:
        return unseen_each(fc.folds(keys, number))

    def unseen_each(fold: NDArray[Any]) -> Numbers:
        out = np.full(len(fold), np.nan)
        for f in np.unique(fold):
            one = _fit(sample, entries, kind, left_out=fold == f)
            out[fold == f] = of(one.value[None])[0][fold == f]
        return out

    return Outcome(
        sample=sample,
        fitted=of(found.value[None])[0],
        grouped=unseen(sample.group, GROUPED),
        new_source=unseen(sample.publication, NEW_SOURCE),
        new_stack=_new_stack(sample, entries, kind),
        new_accelerator=unseen_each(sample.accelerator),
        found=found,
    )


def _new_stack(sample: Sample, entries: list[Entry], kind: str) -> Numbers:
    """Each family of stacks forecast with the generic values of a fit without it."""
    parameters = _parameters(entries, kind)
    out = np.full(len(sample.weight), np.nan)
    for family in np.unique(sample.family):
        mine = sample.family == family
        one = _fit(sample, entries, kind, left_out=mine)
        stranger = fc.strangers(sample, mine, profiles(entries)[GENERIC])
        out[mine] = fc.model(stranger, entries, parameters, KINDS[kind])(one.value[None])[0][mine]
    return out


def _with(
    entries: list[Entry], kind: str, sample: Sample, found: Fit, today: dt.date
) -> list[Entry]:
    """The table with the fitted values of one kind."""
    parameters = _parameters(entries, kind)
    values = fc.fitted_values(entries, parameters, found.value)
    basis = f"fitted: {len(sample.weight)} {kind} rows of hardware/measured_runs.csv"
    new = {
        (e.stack, e.quantity): replace(
            e,
            value=v,
            p10=max(v - Z_90 * s, e.low),
            p90=min(v + Z_90 * s, e.high),
            basis=basis,
            date=today.isoformat(),
        )
        for e, v, s in zip(parameters, values, found.sigma, strict=True)
    }
    return [new.get((e.stack, e.quantity), e) for e in entries]


def _with_widths(
    entries: list[Entry],
    outcome: Outcome,
    terms: Callable[[Circumstances], dict[str, Numeric]],
    fits: str,
    today: dt.date,
) -> list[Entry]:
    """Widths of the intervals: those of the best interval score on unseen rows."""
    sample = outcome.sample
    known = sample.columns.circumstances
    n = len(sample.weight)
    errors = [outcome.grouped, outcome.new_source, outcome.new_stack, outcome.new_accelerator]
    marks = [known, known, unknown(known), replace(known, unseen_accelerator=np.ones(n))]
    residual = np.concatenate([sample.log_measured - e for e in errors])
    weight = np.concatenate([v * sample.weight for v in (1.0, 1.0, 0.5, 0.5)])
    columns = {
        name: np.concatenate([np.asarray(terms(m)[name]) for m in marks]) for name in terms(known)
    }
    families = np.concatenate([sample.family, sample.family, np.full(n, ""), sample.family])
    widths = [e for e in entries if e.fits == fits]
    matrix = np.stack(
        [
            np.where(families == e.stack, columns[e.quantity], 0.0)
            if e.stack != GENERIC
            else np.where(
                np.isin(families, [w.stack for w in widths if w.quantity == e.quantity]),
                0.0,
                columns[e.quantity],
            )
            for e in widths
        ],
        axis=1,
    )
    found = fit_widths(
        residual, matrix, weight,
        low=np.array([e.low for e in widths]), high=np.array([e.high for e in widths]),
    )  # fmt: skip
    basis = f"fitted: 80% of {len(residual)} unseen forecasts of hardware/measured_runs.csv inside"
    new = {
        (e.stack, e.quantity): replace(e, value=float(v), basis=basis, date=today.isoformat())
        for e, v in zip(widths, found, strict=True)
    }
    return [new.get((e.stack, e.quantity), e) for e in entries]
