"""`make fit`: fit the fractions of hardware/efficiency.csv to the shipped runs, from priors.

Memory is fitted first, because it decides what is inferred where runs do not state recompute or
degrees. Throughput follows, then the widths of the intervals, on held-out forecasts. Every fit
starts from the priors.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from app.accuracy import fit_columns as fc
from app.accuracy.fit_intervals import with_widths
from app.accuracy.fit_left_out import FromPriors, Outcome, outcome_of, residual_rows
from app.accuracy.fit_values import at_prior, with_values
from app.accuracy.predict import circumstances_of, tokens_per_s_per_gpu
from core.evidence.measured_runs import MeasuredRuns
from core.evidence.uncertainty import memory_terms, throughput_terms
from hardware.efficiency import Entry, profiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The new table with the outcomes that it was fitted on."""

    entries: list[Entry]
    throughput: Outcome
    memory: Outcome


def refit(entries: list[Entry], today: dt.date, *, only: Collection[str] = ()) -> Result:
    """Fit all values, starting from the priors of `entries`. `only`: the splits in which rows are
    left out; forecasts of the others are NaN. All of them if it names none."""
    fits = FromPriors([at_prior(e) for e in entries], today)
    entries, throughput, memory = fits.memory_of_all()
    of_memory = outcome_of(memory, entries, "memory", fits, only)
    of_throughput = outcome_of(throughput, entries, "throughput", fits, only)
    entries = with_values(entries, "throughput", throughput, of_throughput.found, today)
    fitted, _ = fc.samples(profiles(entries))
    known = circumstances_of(fitted.columns)
    kinds = (
        (of_throughput, throughput_terms, "throughput intervals", known),
        (of_memory, memory_terms, "memory intervals", memory.columns.circumstances),
    )
    for outcome, terms, widths, circumstances in kinds:
        entries = with_widths(entries, outcome, terms, widths, circumstances, today)
    return Result(entries=entries, throughput=of_throughput, memory=of_memory)


def shipped_residuals(result: Result) -> MeasuredRuns:
    """The residuals that ship with the fitted table."""
    sample, _ = fc.samples(profiles(result.entries))
    return residual_rows(sample, np.log(tokens_per_s_per_gpu(sample.columns)))
