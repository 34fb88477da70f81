"""The fitted values of one kind, throughput or memory, from the priors of a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.accuracy import fit_columns as fc
from app.accuracy import fit_kernels
from app.accuracy.fit_columns import Numbers, Sample
from app.accuracy.predict import reported_memory_bytes, tokens_per_s_per_gpu
from app.accuracy.row_columns import Columns
from core.evidence.fitting import Fit, fit
from core.numeric import Z_90
from hardware.efficiency import Entry

KINDS: dict[str, Callable[[Columns], Numbers]] = {
    "throughput": tokens_per_s_per_gpu,
    "memory": reported_memory_bytes,
}


def at_prior(entry: Entry) -> Entry:
    """The entry at its prior, before any fit."""
    if entry.prior is None:
        return entry
    return replace(entry, value=entry.prior, p10=None, p90=None)


def parameters_of(entries: list[Entry], kind: str) -> list[Entry]:
    """The entries that a fit of this kind moves."""
    return [e for e in entries if e.fits == kind and e.prior_sigma > 0]


def fit_of(
    sample: Sample, entries: list[Entry], kind: str, left_out: NDArray[np.bool_] | None = None
) -> Fit:
    """The fit of one kind to a sample, without the rows `left_out`; throughput with kernels that
    were measured alone."""
    parameters = parameters_of(entries, kind)
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


def with_values(
    entries: list[Entry], kind: str, sample: Sample, found: Fit, today: dt.date
) -> list[Entry]:
    """The table with the fitted values of one kind filled in."""
    parameters = parameters_of(entries, kind)
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
    return updated(entries, new)


def updated(entries: list[Entry], new: list[Entry]) -> list[Entry]:
    """The table with these entries in place of those of the same stack and quantity."""
    by_name = {(e.stack, e.quantity): e for e in new}
    return [by_name.get((e.stack, e.quantity), e) for e in entries]
