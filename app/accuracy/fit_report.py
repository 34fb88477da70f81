"""Accuracy of a fit on held-out rows: hardware/cross_validation.csv and a printed table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.accuracy.fit import Outcome, Result
from app.accuracy.fit_columns import Sample, samples
from app.document.blocks import Section
from app.document.table import plain
from core.evidence import uncertainty
from core.evidence.accuracy import Accuracy, scored
from core.evidence.coverage import LARGE
from core.numeric import Numeric
from hardware.cross_validation import CLASS_COVERAGE, MEASURES, SPLITS, Measured
from hardware.efficiency import GENERIC, profiles
from hardware.measured import RUNS_CSV, read_runs


def figures(result: Result, today: dt.date) -> Iterator[tuple[str, str, Measured]]:
    """Rows of (split, measure, figure). Repeats of one configuration count once."""
    table = profiles(result.entries)
    runs, memory = (sample.columns for sample in samples(table))
    known = runs.circumstances
    sigma = uncertainty.throughput_sigma(runs.efficiency, known)
    memory_sigma = uncertainty.memory_sigma(memory.efficiency, memory.circumstances)
    unknown = uncertainty.throughput_sigma(table[GENERIC], uncertainty.unknown(known))
    moe = np.asarray(known.experts) > 0
    date = today.isoformat()
    for split in SPLITS:
        width = unknown if split == "new_stack" else sigma
        of_all = _accuracy(result.throughput, split, width)
        of_moe = _accuracy(result.throughput, split, width, moe)
        of_memory = _accuracy(result.memory, split, memory_sigma)
        for measure, value, rows in (
            ("median", of_all.weighted_median_ape, of_all.n),
            ("mean", of_all.weighted_mean_ape, of_all.n),
            ("p90", of_all.weighted_p90_ape, of_all.n),
            ("within_20", of_all.weighted_within_20, of_all.n),
            ("coverage", of_all.coverage_80, of_all.n),
            ("moe_median", of_moe.weighted_median_ape, of_moe.n),
            ("family_median", of_all.family_median_ape, of_all.n),
            ("memory_median", of_memory.weighted_median_ape, of_memory.n),
            ("memory_p90", of_memory.weighted_p90_ape, of_memory.n),
        ):
            if value is not None:
                yield split, measure, Measured(value=value, rows=rows, date=date)
    for split in ("grouped", "new_source"):
        for label, chosen in _large_classes(result.throughput.sample, moe):
            part = _accuracy(result.throughput, split, sigma, chosen)
            if part.coverage_80 is not None:
                figure = Measured(value=part.coverage_80, rows=part.n, date=date)
                yield split, f"{CLASS_COVERAGE}{label}", figure


def _large_classes(
    sample: Sample, moe: NDArray[np.bool_]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The classes of rows that are large enough to check their coverage."""
    inputs = read_runs(RUNS_CSV).inputs.rows(sample.rows)
    for name, labels in (
        ("architecture", np.where(moe, "moe", "dense")),
        ("accelerator", sample.accelerator),
        ("framework", inputs.framework),
        ("precision", inputs.precision),
    ):
        for label in np.unique(labels):
            if (labels == label).sum() >= LARGE:
                yield f"{name}={label}", labels == label


def _accuracy(
    outcome: Outcome, split: str, sigma: Numeric, use: NDArray[np.bool_] | slice = slice(None)
) -> Accuracy:
    """The errors of the chosen rows, by the fits that left each of them out."""
    sample = outcome.sample
    predicted = np.exp(getattr(outcome, split))
    return scored(
        predicted=predicted[use],
        measured=np.exp(sample.log_measured)[use],
        refused=np.zeros(len(sample.weight), dtype=bool)[use],
        low=np.asarray(uncertainty.p10(predicted, sigma))[use],
        high=np.asarray(uncertainty.p90(predicted, sigma))[use],
        family=sample.group[use],
        configuration=sample.configuration[use],
    )


def fit_blocks(result: Result, found: list[tuple[str, str, Measured]]) -> tuple[Section, Section]:
    """The printed report: cross-validation, then the fitted values with their intervals."""
    value = {(split, measure): m.value for split, measure, m in found}
    folds = [
        (measure, *(percent(value.get((split, measure))) for split in SPLITS))
        for measure in MEASURES
    ]
    fitted = [
        (
            e.stack,
            e.quantity,
            "as generic" if e.prior is None else f"{e.prior:.3g}",
            *(f"{x:.3g}" for x in (e.value, e.p10, e.p90)),
        )
        for e in result.entries
        if e.fits and e.p10 is not None and e.p90 is not None
    ]
    errors, values = "Errors, repeats of one configuration counted once", "Fitted values, SI units"
    heads = ("stack", "quantity", "prior", "fitted", "P10", "P90")
    return (
        Section(errors, (plain(errors, ("measure", *SPLITS), folds, numeric=range(1, 9)),)),
        Section(values, (plain(values, heads, fitted, numeric=range(2, 6)),)),
    )


def percent(value: float | None) -> str:
    """A share with one decimal; '' where there is none."""
    return "" if value is None else f"{value:.1%}"
