"""The results of a validation in sentences, for the page, the terminal and the README."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from app.accuracy.section_scores import Errors, Section, class_coverages, families
from app.document import format as fmt
from core.evidence.accuracy import (
    FITS_AT_MOST,
    MEMORY_CLASSES,
    TIGHT_AT_MOST,
    Accuracy,
    PairAccuracy,
)
from core.evidence.coverage import CLASS_BAND, LARGE, NOMINAL
from hardware.cross_validation import CLASS_COVERAGE, CrossValidation

if TYPE_CHECKING:
    from app.accuracy.validate import Report

KINDS = {
    "accelerator": "Accelerator",
    "precision": "Precision",
    "framework": "Stack",
    "architecture": "Dense or MoE",
    "task": "Task",
    "stack_profile": "Profile of the stack",
}
SPLITS = {
    "fitted": "Fitted on these rows",
    "grouped": "Cross-validation: the fit saw no row of the same source, model and accelerator",
    "new_source": "Cross-validation: the fit saw no row of the same publication",
    "new_stack": "Cross-validation: the fit saw no row of the same family of stacks",
    "unknown_stack": "Cross-validation: the same, and nothing else is known of the stack",
    "new_accelerator": "Cross-validation: the fit saw no row of the same accelerator",
    "newest": "Cross-validation: the newest six months, by a fit to older rows alone",
}
# What is known of the run that is forecast, from nothing to a measurement on its machine.
CLOSENESS = {
    "unknown_stack": "A stack we have never seen",
    "known_stack": "A stack we know",
    "measured_once": "Your own machine, measured once",
    "newest": "Runs newer than every run of the fit",
}
NOTE = (
    "Rows that the shipped efficiencies were fitted on are no blind test: on them the figures say "
    "how well the model can describe what is known."
)
STALE = 0.005  # median errors further apart mean the folds are from another model state
BIAS = "A bias above 0 is a forecast that is too fast, or too large."
KNOBS_FROM = 10  # fewest pairs of a knob to compare it with "no change"
SAME = 1e-9  # log errors that differ by rounding only
FEWEST = 5  # rows of a class or family whose error is worth a name
LISTED = 6


def fold_note(report: Report, folds: CrossValidation) -> str:
    """A note if the cross-validation is from another state of the model, else ''."""
    a, then = report.throughput.overall, folds.get(("fitted", "median"))
    medians = [m for m in (a.median_ape, a.weighted_median_ape) if m is not None]
    if then is None or not medians or min(abs(m - then.value) for m in medians) <= STALE:
        return ""
    return (
        f"The cross-validation is of an earlier state of the model, whose median error on the "
        f"rows of its fit was {fmt.percent(then.value)}; it is {fmt.percent(a.median_ape)} now."
    )


def fold_figures(folds: CrossValidation, measure: str) -> str:
    """One measure of each split except the fitted one: 'grouped 10%, new source 12%'."""
    return ", ".join(
        f"{split.replace('_', ' ')} {fmt.percent(folds[split, measure].value)}"
        for split in ("grouped", "new_source")
        if (split, measure) in folds
    )


def answer_sentence(a: Accuracy, baseline: Accuracy | None = None) -> str:
    """How good the forecasts are, in one sentence. Each configuration counts once."""
    if not a.n:
        return "No run here has both a forecast and a measured throughput."
    return (
        f"Half of the forecasts of {fmt.count(a.configurations)} measured configurations "
        f"({fmt.count(a.n)} runs) are within {fmt.percent(a.weighted_median_ape)} of the measured "
        f"throughput, {fmt.percent(a.weighted_within_20)} are within 20%, and "
        f"{fmt.percent(a.weighted_coverage_80)} of the measurements are inside P10 to P90."
        f"{_constant_mfu(baseline)}"
    )


def _constant_mfu(baseline: Accuracy | None) -> str:
    if baseline is None or baseline.weighted_median_ape is None:
        return ""
    error = fmt.percent(baseline.weighted_median_ape)
    return f" A constant MFU per kind of run is off by {error}."


def closeness_sentence(folds: CrossValidation) -> str:
    """The headline: the error by what is known of a run; '' without such cross-validation."""
    if any((split, "median") not in folds for split in CLOSENESS):
        return ""
    never, known, once, newest = (fmt.percent(folds[s, "median"].value) for s in CLOSENESS)
    return (
        f"Half of the forecasts of published runs are within {never} of the measured throughput "
        f"where nothing is known of the stack, within {known} where other publications had runs "
        f"of the stack, and within {once} once another run on the same machine was measured. Runs "
        f"newer than every run of the fit are off by {newest} at the median."
    )


def shipped_sentence(a: Accuracy) -> str:
    """The error on the rows of the fit itself, which the headline is not about."""
    return (
        f"Each of the configurations counts once. On the rows of the fit itself "
        f"({fmt.count(a.n)} runs, {fmt.count(a.configurations)} configurations) the median is "
        f"{fmt.percent(a.weighted_median_ape)}; the median of the medians of "
        f"{fmt.count(a.families)} families (source, model, accelerator) is "
        f"{fmt.percent(a.family_median_ape)}."
    )


def coverage_lines(section: Section) -> list[str]:
    """For which classes the interval has its nominal coverage, one sentence per line."""
    found = class_coverages(section)
    large = [c for c in found if c.accuracy.n >= LARGE]
    low, high = map(fmt.percent, CLASS_BAND)
    wrong = {v: [c for c in large if c.verdict == v] for v in ("too wide", "too narrow")}
    small = [c for c in found if c.accuracy.n < LARGE and c.verdict == "too narrow"]
    honest = len(large) - sum(map(len, wrong.values()))
    few = f"Smaller classes significantly below {fmt.percent(NOMINAL)} (binomial, 5%)"
    return [
        f"{fmt.count(honest)} of {fmt.count(len(large))} classes of {LARGE} runs or more are "
        f"inside {low} to {high}.",
        *(f"{v.capitalize()}: {_named(rows)}." for v, rows in wrong.items() if rows),
        f"{few}: {_named(small) if small else 'none'}.",
    ]


def fold_coverage_lines(folds: CrossValidation) -> list[str]:
    """For which held-out classes the interval has its nominal coverage, a sentence per split."""
    low, high = CLASS_BAND
    lines = []
    for split, name in (("grouped", "Grouped"), ("new_source", "New publication")):
        found = {
            measure.removeprefix(CLASS_COVERAGE).split("=", 1)[1]: m.value
            for (s, measure), m in folds.items()
            if s == split and measure.startswith(CLASS_COVERAGE)
        }
        if not found:
            continue
        narrow = [f"{k} {fmt.percent(v)}" for k, v in found.items() if v < low]
        wide = [f"{k} {fmt.percent(v)}" for k, v in found.items() if v > high]
        listed = "".join(
            f"; too {word}: {', '.join(part)}"
            for word, part in (("narrow", narrow), ("wide", wide))
            if part
        )
        honest = len(found) - len(narrow) - len(wide)
        lines.append(
            f"{name}: {fmt.count(honest)} of {fmt.count(len(found))} classes of {LARGE} runs or "
            f"more are inside {fmt.percent(low)} to {fmt.percent(high)}{listed}."
        )
    return lines


def _named(classes: Sequence[Errors]) -> str:
    return ", ".join(f"{class_name(c)} {fmt.percent(c.accuracy.coverage_80)}" for c in classes)


def class_name(c: Errors) -> str:
    """The name of a class without its kind, where the label is clear enough."""
    if c.by == "stack_profile":
        return f"stacks of {c.label} profile"
    return "MoE" if c.label == "moe" else c.label


def once_sentence(a: Accuracy) -> str:
    """The metrics with each configuration counted once."""
    return (
        f"Each configuration once ({fmt.count(a.configurations)} in {fmt.count(a.n)} rows): median "
        f"{fmt.percent(a.weighted_median_ape)}, mean {fmt.percent(a.weighted_mean_ape)}, P90 "
        f"{fmt.percent(a.weighted_p90_ape)}, within 20% {fmt.percent(a.weighted_within_20)}, in "
        f"P10-P90 {fmt.percent(a.weighted_coverage_80)}. Median of the medians of "
        f"{fmt.count(a.families)} families (source, model, accelerator): "
        f"{fmt.percent(a.family_median_ape)}."
    )


def weak_classes(parts: Mapping[str, Mapping[str, Accuracy]]) -> str:
    """Names the classes with the largest median errors."""
    found = [
        (a.median_ape or 0.0, label, a.n)
        for by, of in parts.items()
        if by != "stack_profile"
        for label, a in of.items()
        if a.n >= FEWEST
    ]
    worst = sorted(found, reverse=True)[:LISTED]
    return ", ".join(f"{label} {fmt.percent(e)} ({fmt.count(n)} rows)" for e, label, n in worst)


def weak_families(section: Section) -> str:
    """Names the families with the largest median errors."""
    worst = [f for f in families(section) if f.accuracy.n >= FEWEST][:LISTED]
    return ", ".join(
        f"{f.model} on {f.accelerator} {fmt.percent(f.accuracy.median_ape)} "
        f"({fmt.count(f.accuracy.n)} rows)"
        for f in worst
    )


def memory_class_bounds() -> dict[str, str]:
    """The probability bounds of each class of memory forecast."""
    low, high = fmt.percent(FITS_AT_MOST), fmt.percent(TIGHT_AT_MOST)
    texts = (f"at most {low}", f"{low} to {high}", f"above {high}")
    return dict(zip(MEMORY_CLASSES, texts, strict=True))


def memory_sentence(report: Report) -> str:
    """The error of the peaks, and the forecasts of runs that ran out of memory."""
    a, oom = report.memory.overall, report.oom
    if not a.n and not oom.n_fit + oom.n_oom:
        return "No run here says its peak memory."
    median = f"The peak memory of {fmt.count(a.n)} runs is off by {fmt.percent(a.median_ape)}"
    bounds = ", ".join(f"{name}: {bound}" for name, bound in memory_class_bounds().items())
    peak = f"{median} at the median. " if a.n else ""
    return f"{peak}{oom_text(report)} (P of running out: {bounds}.)"


def oom_text(report: Report) -> str:
    """The forecasts for runs that ran and for runs that ran out of memory."""
    oom = report.oom
    ran = ", ".join(f'"{c}" of {fmt.count(oom.classes_of_fit[c])}' for c in MEMORY_CLASSES)
    out = ", ".join(f'"{c}" of {fmt.count(oom.classes_of_oom[c])}' for c in MEMORY_CLASSES)
    return (
        f"Of {fmt.count(oom.n_fit)} runs that ran, the forecast says {ran}; of "
        f"{fmt.count(oom.n_oom)} that ran out of memory, {out}."
    )


def oom_figures(report: Report) -> str:
    """The forecast probabilities for runs that ran out of memory and for those that did not."""
    oom = report.oom
    return (
        f"Out of memory: {fmt.count(oom.n_oom)} runs did, mean predicted probability "
        f"{fmt.percent(oom.mean_probability_of_oom)}, {fmt.percent(oom.oom_found)} found; "
        f"{fmt.count(oom.n_fit)} fitted, mean {fmt.percent(oom.mean_probability_of_fit)}, "
        f"{fmt.percent(oom.false_alarms)} false alarms."
    )


def pairs_sentence(report: Report) -> str:
    """How well the effect of changing one knob is predicted."""
    p = report.pairs.overall
    if not p.n:
        return "There are no pairs of runs that differ in one knob."
    change, none = three_decimals(p.median_log_error), three_decimals(p.no_change_median_log_error)
    return (
        f"{fmt.count(p.n)} pairs of runs that differ in one knob: the log of the predicted ratio "
        f'is off by {change} at the median ({none} for "no change"); of the '
        f"{fmt.count(p.n_changed)} pairs that differ by more than 5%, "
        f"{fmt.percent(p.changed_direction_right)} have the right direction."
    )


def against_no_change(p: PairAccuracy) -> str:
    """Whether the forecast of a knob beats "no change": better, the same, worse, too few pairs."""
    ours, none = p.median_log_error, p.no_change_median_log_error
    if p.n < KNOBS_FROM or ours is None or none is None:
        return "too few pairs"
    if abs(ours - none) <= SAME:
        return "the same"
    return "better" if ours < none else "worse"


def weak_knobs(report: Report) -> str:
    """The knobs whose forecast is no better than assuming no change."""
    parts = report.pairs.by.get("knob", {})
    found = {name: p for name, p in parts.items() if against_no_change(p) in ("worse", "the same")}
    named = (
        f"{name} {three_decimals(p.median_log_error)} against "
        f"{three_decimals(p.no_change_median_log_error)} ({fmt.count(p.n)} pairs)"
        for name, p in found.items()
    )
    return ", ".join(named) or "none"


def three_decimals(value: float | None) -> str:
    """A logarithmic error as text."""
    return fmt.MISSING if value is None else f"{value:.3f}"
