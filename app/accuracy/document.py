"""The tables of a validation other than the errors, which are in errors.py.

They are the points of the chart, memory classes, knobs, other estimators, what is not modelled,
and the rows of a user's file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from app.accuracy.errors import number
from app.accuracy.rows import Offence
from app.accuracy.section_scores import Flags
from app.accuracy.words import (
    KINDS,
    against_no_change,
    memory_class_bounds,
    three_decimals,
)
from app.document import format as fmt
from app.document.on_use import pd
from app.document.table import Column, Table, text_column
from core.evidence.accuracy import MEMORY_CLASSES, PairAccuracy
from hardware.claims import NotModelled, not_modelled
from hardware.cross_validation import CrossValidation
from hardware.estimators import estimators

if TYPE_CHECKING:
    from app.accuracy.validate import Report

FILTERS = ("accelerator", "precision", "framework", "architecture")
RATIO = "Measured / predicted"


def choices(report: Report, kind: str) -> list[str]:
    """The labels of one kind that have a scored run, most frequent first."""
    return [label for label, a in report.throughput.by[kind].items() if a.n]


def chosen_rows(report: Report, wanted: Mapping[str, Sequence[str]]) -> Flags:
    """Which rows match the filter: for each kind, a wanted label; an empty list allows any."""
    every = np.full(len(report.runs), True)
    masks = (np.isin(report.labels[kind], list(names)) for kind, names in wanted.items() if names)
    return reduce(np.logical_and, masks, every)


def points(report: Report, chosen: Flags) -> pd.DataFrame:
    """The scored runs among the chosen rows with their forecasts, for the chart and its CSV."""
    rows, inputs = report.throughput.rows, report.runs.inputs
    at = np.flatnonzero(rows.scored() & chosen)
    return pd.DataFrame(
        {
            "run_id": inputs.run_id[at],
            "source": inputs.source[at],
            "model": inputs.model_key[at],
            **{kind: report.labels[kind][at] for kind in KINDS},
            "num_gpus": inputs.num_gpus[at],
            "measured_tokens_per_s_per_gpu": rows.measured[at],
            "predicted_tokens_per_s_per_gpu": rows.predicted[at],
            "p10": report.predictions.tokens_per_s_per_gpu_p10[at],
            "p90": report.predictions.tokens_per_s_per_gpu_p90[at],
            "measured_over_predicted": rows.ratio()[at],
            "inside_p10_p90": np.where(rows.inside()[at], "yes", "no"),
        }
    )


def memory_classes(report: Report) -> Table[str]:
    """Memory forecasts for the runs that ran and for those that ran out of memory."""
    oom, bounds = report.oom, memory_class_bounds()
    ran, out = oom.classes_of_fit, oom.classes_of_oom
    columns = (
        text_column("Forecast", lambda c: str(c)),
        text_column("P(out of memory)", lambda c: bounds[c]),
        number("Runs that ran", lambda c: ran.get(c, 0), fmt.count),
        number("Share", lambda c: ran.get(c, 0) / oom.n_fit if oom.n_fit else None),
        number("Runs that ran out", lambda c: out.get(c, 0), fmt.count),
    )
    return Table(caption="Memory classes", columns=columns, rows=MEMORY_CLASSES)


@dataclass(frozen=True, slots=True)
class Knob:
    """Pairs of runs that differ in one knob."""

    name: str
    found: PairAccuracy


KNOBS: tuple[Column[Knob], ...] = (
    text_column("Knob", lambda k: k.name, wraps=True),
    number("Pairs", lambda k: k.found.n, fmt.count),
    number("Refused", lambda k: k.found.refused, fmt.count),
    number("Log error", lambda k: k.found.median_log_error, three_decimals),
    number("If no change", lambda k: k.found.no_change_median_log_error, three_decimals),
    text_column("Against no change", lambda k: against_no_change(k.found)),
    number("Median error", lambda k: k.found.median_ape, short="Median"),
    number("P90", lambda k: k.found.p90_ape),
    number("Direction right", lambda k: k.found.direction_right, short="Direction"),
    number("Beyond 5%", lambda k: k.found.changed_direction_right),
)


def pairs(report: Report) -> Table[Knob]:
    """Predicted against measured effects of each knob, with the errors of assuming no change."""
    parts = {"all pairs": report.pairs.overall, **report.pairs.by.get("knob", {})}
    if report.pairs.memory.n:
        parts["memory, all pairs"] = report.pairs.memory
    rows = tuple(Knob(name.replace("_", " "), p) for name, p in parts.items())
    return Table(caption="Errors of predicted effects by knob", columns=KNOBS, rows=rows)


@dataclass(frozen=True, slots=True)
class Estimate:
    """The accuracy that another estimator publishes about itself."""

    estimator: str
    measure: str
    figure: str
    scope: str
    source: str


ESTIMATES: tuple[Column[Estimate], ...] = (
    text_column("Estimator", lambda e: e.estimator),
    text_column("Measure", lambda e: e.measure),
    text_column("Figure", lambda e: e.figure),
    text_column("Measured on", lambda e: e.scope),
    text_column("Source", lambda e: e.source),
)
# Only two columns of sentences, to fit a narrow screen.
READ_ALOUD: tuple[Column[Estimate], ...] = (
    text_column("Printed", lambda e: f"{e.estimator}: {e.measure} {e.figure}"),
    text_column("Measured on", lambda e: f"{e.scope}. {e.source}."),
)


def published(report: Report, folds: CrossValidation) -> Table[Estimate]:
    """Our mean error, the baseline's, and the errors that other estimators publish."""
    return Table(
        caption="Errors that estimators print",
        columns=ESTIMATES,
        rows=tuple(_estimates(report, folds)),
    )


def _estimates(report: Report, folds: CrossValidation) -> Iterator[Estimate]:
    a, others = report.throughput.overall, report.baseline.overall
    mean = "mean error of the throughput"
    runs = f"{fmt.count(a.n)} published runs of {fmt.count(a.families)} families"
    ours = fmt.percent(a.mean_ape)
    yield Estimate("Runcast", mean, ours, f"{runs}; fitted on them", "This page")
    splits = {"grouped": "source, model and accelerator", "new_source": "publication"}
    for split, seen in splits.items():
        if (split, "mean") in folds:
            fold = folds[split, "mean"]
            scope = f"{fmt.count(fold.rows)} runs, by fits that saw no run of the same {seen}"
            figure = fmt.percent(fold.value)
            yield Estimate("Runcast", mean, figure, scope, f"Measured here, {fold.date}")
    scope = f"{runs}; medians of other publications"
    yield Estimate("Constant MFU", mean, fmt.percent(others.mean_ape), scope, "This page")
    for e in estimators():
        source = f"{e.source}, {e.source_date}"
        yield Estimate(e.estimator, e.measure, f"{e.value:g}{e.unit}", e.scope, source)


def missing() -> Table[NotModelled]:
    """The names that do not change any forecast, and why."""
    columns = (
        text_column("Group", lambda m: m.group),
        text_column("Name", lambda m: m.name),
        text_column("Why", lambda m: m.why),
    )
    return Table(caption="What is not modelled", columns=columns, rows=tuple(not_modelled()))


def named_rows(report: Report) -> Table[Offence]:
    """The rows of a file that cannot be used, or only in part."""
    columns = (
        number("Line", lambda o: o.line, str),
        text_column("Run", lambda o: o.run_id),
        text_column("Reason", lambda o: o.reason),
        text_column("Forecast", lambda o: "yes, not scored" if o.has_forecast else "no"),
    )
    return Table(
        caption="Rows that cannot be used, or not for everything",
        columns=columns,
        rows=report.offences,
    )


def own_runs(report: Report) -> Table[int]:
    """The forecast runs of a file with their measurements, by their row number in the file."""
    p, m, inputs = report.predictions, report.runs.measured, report.runs.inputs
    throughput, memory = report.throughput.rows, report.memory.rows

    def of(name: str, values: Any, write: Callable[[Any], str] | None = None) -> Column[int]:
        is_text = write is None
        return Column(name=name, head=name, value=lambda i: values[i], write=write, is_text=is_text)

    outcome = {1.0: "yes", 0.0: "no"}
    columns = (
        of("Run", inputs.run_id),
        of("Accelerator", report.labels["accelerator"]),
        of("GPUs", inputs.num_gpus, fmt.count),
        of("Measured (tokens/s per GPU)", throughput.measured, fmt.count),
        of("Forecast (tokens/s per GPU)", p.tokens_per_s_per_gpu_p50, fmt.count),
        of("P10", p.tokens_per_s_per_gpu_p10, fmt.count),
        of("P90", p.tokens_per_s_per_gpu_p90, fmt.count),
        of(RATIO, throughput.ratio(), _figures),
        of("Measured peak (GiB)", memory.measured, _figures),
        of("Forecast peak (GiB)", p.peak_memory_gib, _figures),
        of("P(out of memory)", p.probability_oom, fmt.percent),
        of("Ran out of memory", [outcome.get(float(out), fmt.MISSING) for out in m.oom]),
    )
    rows = tuple(int(i) for i in np.flatnonzero(p.ok))
    return Table(caption="Your runs", columns=columns, rows=rows)


def _figures(value: float) -> str:
    return fmt.MISSING if np.isnan(value) else f"{value:.3g}"
