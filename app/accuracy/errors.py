"""The tables of forecast errors: one row per set of runs, the same columns in every table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from app.accuracy.blind import examinations
from app.accuracy.section_scores import Errors, class_coverages, families
from app.accuracy.words import CLOSENESS, KINDS, SPLITS
from app.document import format as fmt
from app.document.table import Column, Table, column, text_column
from core.evidence.accuracy import Accuracy
from hardware.cross_validation import CrossValidation

if TYPE_CHECKING:
    from app.accuracy.validate import Report

FITTED = "fitted"  # the split that forecasts the runs it was fitted on
MEASURES = ("Median error", "Mean", "P90", "Within 20%", "Inside P10-P90")


def number(
    name: str, of: Callable[[Any], Any], write: Callable[[Any], str] = fmt.percent, short: str = ""
) -> Column[Any]:
    """A column of numbers."""
    return column(name, of, write=write, short=short)


COLUMNS: tuple[Column[Errors], ...] = (
    text_column("Kind", lambda r: KINDS[r.by]),
    text_column("Class", lambda r: r.label),
    text_column("Model", lambda r: r.model),
    text_column("Accelerator", lambda r: r.accelerator),
    number("Runs", lambda r: r.accuracy.n, fmt.count),
    number("Refused", lambda r: r.accuracy.refused, fmt.count),
    number("Median error", lambda r: r.accuracy.median_ape, short="Median"),
    number("Mean", lambda r: r.accuracy.mean_ape),
    number("P90", lambda r: r.accuracy.p90_ape),
    number("Within 20%", lambda r: r.accuracy.within_20, short="In 20%"),
    number("Inside P10-P90", lambda r: r.accuracy.coverage_80, short="In P10-P90"),
    number("From", lambda r: r.accuracy.coverage_low),
    number("To", lambda r: r.accuracy.coverage_high),
    text_column("Interval", lambda r: r.verdict),
    number("Bias", lambda r: r.accuracy.bias),
    number("Baseline median", lambda r: r.baseline and r.baseline.median_ape, short="Base median"),
    number("Baseline P90", lambda r: r.baseline and r.baseline.p90_ape, short="Base P90"),
    text_column("Source", lambda r: r.source, wraps=True),
)


_label = attrgetter("label")  # one function for every table, so that their columns compare equal


def _labelled(first: str, caption: str, rows: Iterable[Errors], *names: str) -> Table[Errors]:
    """A table with the labels in the first column, under the given header."""
    label = text_column(first, _label, wraps=True)
    columns = tuple(c for c in COLUMNS if c.name != first)
    return Table(caption=caption, columns=(label, *columns), rows=tuple(rows)).only(first, *names)


def _fold(split: str, folds: CrossValidation, label: str) -> Errors:
    def of(measure: str) -> float | None:
        return folds[split, measure].value if (split, measure) in folds else None

    found = folds[split, "median"]
    unseen = Accuracy(
        n=found.rows,
        refused=0,
        median_ape=of("median"),
        mean_ape=of("mean"),
        p90_ape=of("p90"),
        within_20=of("within_20"),
        coverage_80=of("coverage"),
        bias=None,
        family_median_ape=of("family_median"),
    )
    return Errors(accuracy=unseen, label=label)


def of_folds(folds: CrossValidation, *splits: str) -> Table[Errors]:
    """Cross-validated errors, one row per way of splitting the runs."""
    given = [split for split in splits or SPLITS if (split, "median") in folds]
    dated = {split: f"{SPLITS[split]} ({folds[split, 'median'].date})" for split in given}
    rows = [_fold(split, folds, label) for split, label in dated.items()]
    caption = "Error of the forecast throughput of published runs, |forecast / measured - 1|"
    return _labelled("Throughput", caption, rows, "Runs", *MEASURES)


def by_closeness(folds: CrossValidation) -> Table[Errors]:
    """The errors by what is known of the run that is forecast, on rows that no fit had seen."""
    given = [split for split in CLOSENESS if (split, "median") in folds]
    rows = [_fold(split, folds, CLOSENESS[split]) for split in given]
    caption = "Error of the forecast throughput by what is known"
    return _labelled("What is known", caption, rows, "Runs", "Median error", "P90", "Within 20%")


def headlines(report: Report, folds: CrossValidation) -> Table[Errors]:
    """The main errors: as shipped, with repeats counted once, cross-validated, and the baseline."""
    a, baseline = report.throughput.overall, report.baseline.overall
    once = replace(
        a,
        median_ape=a.weighted_median_ape,
        mean_ape=a.weighted_mean_ape,
        p90_ape=a.weighted_p90_ape,
        within_20=a.weighted_within_20,
        coverage_80=a.weighted_coverage_80,
    )
    weighed = f"Forecast, each of {fmt.count(a.configurations)} configurations once"
    similar = "Baseline: the median MFU of similar runs of other publications"
    rows = (
        Errors(accuracy=a, label="Forecast, fitted on these rows" if folds else "Forecast"),
        Errors(accuracy=once, label=weighed),
        *of_folds(folds, *(split for split in SPLITS if split != FITTED)).rows,
        *(examination.row for examination in examinations()),
        Errors(accuracy=baseline, label=similar),
    )
    return _labelled("Throughput", "Errors of the forecast throughput", rows, *MEASURES)


def of_throughput(report: Report, by: str = "") -> Table[Errors]:
    """Throughput errors of all runs, or of each class of one kind, with the baseline's."""
    ours, other = (
        section.by[by] if by else {"All runs": section.overall}
        for section in (report.throughput, report.baseline)
    )
    rows = (Errors(accuracy=a, label=name, baseline=other.get(name)) for name, a in ours.items())
    columns = ("Runs", "Refused", *MEASURES, "Baseline median", "Baseline P90")
    return _labelled(KINDS.get(by, "Throughput"), "Errors of the throughput", rows, *columns)


def of_memory(report: Report) -> Table[Errors]:
    """Errors of the peak memory, overall and by stack."""
    parts = {"All runs": report.memory.overall, **report.memory.by["framework"]}
    rows = (Errors(accuracy=a, label=label) for label, a in parts.items())
    columns = ("Runs", "Refused", *MEASURES, "Bias")
    return _labelled("Stack", "Errors of the peak memory by stack", rows, *columns)


def of_classes(report: Report) -> Table[Errors]:
    """Coverage of each class with exact bounds, largest class first."""
    rows = tuple(class_coverages(report.throughput))
    return Table(caption="Coverage by class", columns=COLUMNS, rows=rows).only(
        "Kind", "Class", "Runs", "Inside P10-P90", "From", "To", "Interval", "Median error"
    )


def of_families(report: Report) -> Table[Errors]:
    """The errors of each family of runs, worst first."""
    rows = tuple(families(report.throughput))
    return Table(caption="Errors by family", columns=COLUMNS, rows=rows).only(
        "Model", "Accelerator", "Runs", "Median error", "Bias", "Source"
    )
