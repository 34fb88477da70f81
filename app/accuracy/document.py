"""The tables of the Accuracy page: what a validation found, as rows. No score is made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from app.accuracy.section_scores import Flags, class_coverages, families
from app.accuracy.words import KINDS, against_no_change, headlines, memory_class_bounds
from app.document import format as fmt
from core.evidence.accuracy import MEMORY_CLASSES
from hardware.claims import not_modelled
from hardware.cross_validation import CrossValidation
from hardware.estimators import estimators

if TYPE_CHECKING:
    from app.accuracy.validate import Report

FILTERS = ("accelerator", "precision", "framework", "architecture")
RATIO = "Measured / predicted"
PERCENT = ("Median error", "Inside P10-P90", "From", "To", "Bias", "Error")


def choices(report: Report, kind: str) -> list[str]:
    """Labels of one kind that have a scored run, the most frequent first."""
    return [label for label, a in report.throughput.by[kind].items() if a.n]


def chosen_rows(report: Report, wanted: Mapping[str, Sequence[str]]) -> Flags:
    """Rows whose label of every kind is among the wanted ones; none wanted is any."""
    every = np.full(len(report.runs), True)
    masks = (np.isin(report.labels[kind], list(names)) for kind, names in wanted.items() if names)
    return reduce(np.logical_and, masks, every)


def points(report: Report, chosen: Flags) -> pd.DataFrame:
    """Every scored run of the chosen rows with its forecast: the chart and its CSV."""
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


def errors(report: Report, folds: CrossValidation) -> pd.DataFrame:
    """The headline errors beside the baseline's, as text."""
    columns = ("Throughput", "Median error", "Mean", "P90", "Within 20%", "Inside P10-P90")
    rows = [(h.label, *h.cells()) for h in headlines(report, folds)]
    return pd.DataFrame(rows, columns=list(columns))


def coverage(report: Report) -> pd.DataFrame:
    """Coverage of every class, with exact bounds."""
    found = class_coverages(report.throughput)
    return pd.DataFrame(
        {
            "Kind": [KINDS[c.by] for c in found],
            "Class": [c.label for c in found],
            "Runs": [c.accuracy.n for c in found],
            "Inside P10-P90": [c.accuracy.coverage_80 for c in found],
            "From": [c.accuracy.coverage_low for c in found],
            "To": [c.accuracy.coverage_high for c in found],
            "Interval": [c.verdict for c in found],
            "Median error": [c.accuracy.median_ape for c in found],
        }
    )


def worst_families(report: Report) -> pd.DataFrame:
    """Every family, the worst first."""
    found = families(report.throughput)
    return pd.DataFrame(
        {
            "Model": [f.model for f in found],
            "Accelerator": [f.accelerator for f in found],
            "Runs": [f.accuracy.n for f in found],
            "Median error": [f.accuracy.median_ape for f in found],
            "Bias": [f.accuracy.bias for f in found],
            "Source": [f.source for f in found],
        }
    )


def memory(report: Report) -> pd.DataFrame:
    """Errors of the peak memory, as a whole and by stack."""
    parts = {"All runs": report.memory.overall, **report.memory.by["framework"]}
    return pd.DataFrame(
        {
            "Stack": list(parts),
            "Runs": [a.n for a in parts.values()],
            "Median error": [a.median_ape for a in parts.values()],
            "Inside P10-P90": [a.coverage_80 for a in parts.values()],
            "Bias": [a.bias for a in parts.values()],
        }
    )


def memory_classes(report: Report) -> pd.DataFrame:
    """What was said of runs that ran and of runs that ran out of memory."""
    oom, bounds = report.oom, memory_class_bounds()
    return pd.DataFrame(
        {
            "Forecast": list(MEMORY_CLASSES),
            "P(out of memory)": [bounds[c] for c in MEMORY_CLASSES],
            "Runs that ran": [fmt.count(oom.classes_of_fit[c]) for c in MEMORY_CLASSES],
            "Runs that ran out": [fmt.count(oom.classes_of_oom[c]) for c in MEMORY_CLASSES],
        }
    ).set_index("Forecast")


def pairs(report: Report) -> pd.DataFrame:
    """Effects of one knob, predicted against measured, beside "no change"."""
    parts = {"all pairs": report.pairs.overall, **report.pairs.by.get("knob", {})}
    if report.pairs.memory.n:
        parts["memory, all pairs"] = report.pairs.memory
    return pd.DataFrame(
        {
            "Knob": [name.replace("_", " ") for name in parts],
            "Pairs": [p.n for p in parts.values()],
            "Log error": [p.median_log_error for p in parts.values()],
            "If no change": [p.no_change_median_log_error for p in parts.values()],
            "Against no change": [against_no_change(p) for p in parts.values()],
            "Direction right": [p.direction_right for p in parts.values()],
            "Beyond 5%": [p.changed_direction_right for p in parts.values()],
        }
    )


def published(report: Report, folds: CrossValidation) -> pd.DataFrame:
    """Our mean error, the baseline's, and what other estimators print of themselves."""
    a, others = report.throughput.overall, report.baseline.overall
    mean = "mean error of the throughput"
    runs = f"{fmt.count(a.n)} published runs of {fmt.count(a.families)} families"
    rows = [("Runcast", mean, fmt.percent(a.mean_ape), f"{runs}; fitted on them", "This page")]
    splits = {"grouped": "source, model and accelerator", "new_source": "publication"}
    for split, seen in splits.items():
        if (split, "mean") in folds:
            fold = folds[split, "mean"]
            scope = f"{fmt.count(fold.rows)} runs, by fits that saw no run of the same {seen}"
            rows.append(
                ("Runcast", mean, fmt.percent(fold.value), scope, f"Measured here, {fold.date}")
            )
    scope = f"{runs}; medians of other publications"
    rows.append(("Constant MFU", mean, fmt.percent(others.mean_ape), scope, "This page"))
    rows += [
        (e.estimator, e.measure, f"{e.value:g}{e.unit}", e.scope, f"{e.source}, {e.source_date}")
        for e in estimators()
    ]
    columns = ["Estimator", "Measure", "Figure", "Measured on", "Source"]
    return pd.DataFrame(rows, columns=columns)


def read_aloud(frame: pd.DataFrame) -> pd.DataFrame:
    """The same in two columns of sentences, which fit a narrow screen."""
    figure = frame["Estimator"] + ": " + frame["Measure"] + " " + frame["Figure"]
    where = frame["Measured on"] + ". " + frame["Source"] + "."
    return pd.DataFrame({"Printed": figure, "Measured on": where})


def missing() -> pd.DataFrame:
    """Every name that changes no forecast, and why."""
    found = not_modelled()
    columns = {"Group": "group", "Name": "name", "Why": "why"}
    return pd.DataFrame(
        {head: [getattr(m, field) for m in found] for head, field in columns.items()}
    )


def named_rows(report: Report) -> pd.DataFrame:
    """Every row of a file that cannot be used, or not for everything."""
    return pd.DataFrame(
        {
            "Line": [o.line for o in report.offences],
            "Run": [o.run_id for o in report.offences],
            "Reason": [o.reason for o in report.offences],
            "Forecast": ["yes, not scored" if o.has_forecast else "no" for o in report.offences],
        }
    )


def own_runs(report: Report) -> pd.DataFrame:
    """Every forecast run of a file beside what was measured there."""
    p, m, inputs = report.predictions, report.runs.measured, report.runs.inputs
    at = np.flatnonzero(p.ok)
    measured, memory_gib = report.throughput.rows.measured[at], report.memory.rows.measured[at]
    return pd.DataFrame(
        {
            "Run": inputs.run_id[at],
            "Accelerator": report.labels["accelerator"][at],
            "GPUs": inputs.num_gpus[at],
            "Measured (tokens/s per GPU)": measured,
            "Forecast (tokens/s per GPU)": p.tokens_per_s_per_gpu_p50[at],
            "P10": p.tokens_per_s_per_gpu_p10[at],
            "P90": p.tokens_per_s_per_gpu_p90[at],
            RATIO: report.throughput.rows.ratio()[at],
            "Measured peak (GiB)": memory_gib,
            "Forecast peak (GiB)": p.peak_memory_gib[at],
            "P(out of memory)": p.probability_oom[at],
            "Ran out of memory": [
                {1.0: "yes", 0.0: "no"}.get(float(out), fmt.MISSING) for out in m.oom[at]
            ],
        }
    )


def styled(frame: pd.DataFrame) -> Styler:
    """A table as it is shown; sorting still sees the numbers."""
    shares = (*PERCENT, "Direction right", "Beyond 5%", "P(out of memory)")
    texts: dict[str, Any] = dict.fromkeys(shares, fmt.percent)
    texts |= dict.fromkeys(("Log error", "If no change"), _three)
    texts |= dict.fromkeys(("Runs", "Pairs", "GPUs", "Line"), fmt.count)
    tokens = ("Measured (tokens/s per GPU)", "Forecast (tokens/s per GPU)", "P10", "P90")
    texts |= dict.fromkeys(tokens, fmt.count)
    texts |= dict.fromkeys((RATIO, "Measured peak (GiB)", "Forecast peak (GiB)"), _figures)
    return frame.style.format({n: f for n, f in texts.items() if n in frame})


def _three(value: float | None) -> str:
    return fmt.MISSING if value is None or np.isnan(value) else f"{value:.3f}"


def _figures(value: float) -> str:
    return fmt.MISSING if np.isnan(value) else f"{value:.3g}"
