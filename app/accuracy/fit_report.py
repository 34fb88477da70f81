"""Accuracy of a fit on held-out rows: cross_validation.csv, choices.csv and printed tables.

The ablation says how much each ingredient of the model helps: it fits again with that one off.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.accuracy.choices import regrets
from app.accuracy.closeness import closeness
from app.accuracy.fit import Result, refit
from app.accuracy.fit_columns import Sample, samples
from app.accuracy.fit_left_out import Outcome
from app.accuracy.predict import circumstances_of
from app.document.blocks import Section
from app.document.table import Table, plain
from core.errors import unknown_name
from core.evidence import uncertainty
from core.evidence.accuracy import Accuracy, scored
from core.evidence.coverage import LARGE
from core.numeric import Numeric
from hardware.cross_validation import (
    CHOICE_SPLITS,
    CLASS_COVERAGE,
    MEASURES,
    SPLITS,
    ChoiceFigure,
    Measured,
)
from hardware.efficiency import GENERIC, Entry, profiles
from hardware.measured import RUNS_CSV, read_runs

# Label, and the values that switch the ingredient off. None drops the values of stack families.
INGREDIENTS: tuple[tuple[str, dict[str, float] | None], ...] = (
    ("nothing", {}),
    ("stacks differ", None),
    ("attention slower on short sequences", {"attention_half_tokens": 0.0}),
    ("old attention kernels on new devices", {"flash2": 1.0}),
    ("traffic of skinny matmuls", {"matmul_unhidden": 0.0}),
    ("elementwise operators bound by issue, too", {"onchip": 0.0}),
    ("head dimensions that matrix units cannot take", {"unaligned_slowdown": 1.0}),
    ("memory-bound operators", {"elementwise": 0.3, "permutation": 0.5}),
    ("experts slower than dense matmuls", {"grouped_matmul": 1.0}),
    (
        "host overhead",
        {"host_s": 0.0, "expert_host_s": 0.0, "adapter_host_s": 0.0, "zero3_host_s": 0.0},
    ),
    ("fixed time of a step", {"step_s": 0.0}),
    ("recompute costs time", {"selective_recompute": 0.05, "full_recompute": 0.3}),
    ("software gets faster", {"software_per_year": 0.0}),
    ("latency of hops", {"hop": 0.1}),
    ("networks give less to more machines", {"scale_out_doubling": 0.0}),
    ("pieces hide tensor-parallel traffic", {"tp_exposed": 1.0}),
    ("chunks hide pipeline traffic", {"pp_exposed": 1.0}),
    ("backward hides gradients", {"dp_exposed": 1.0}),
    ("exposed FSDP traffic", {"fsdp_exposed": 0.0}),
    ("overlap slows computation", {"overlap_slowdown": 0.0}),
)
FIGURES = [(split, measure) for split in ("grouped", "new_source")
           for measure in ("median", "mean", "p90", "moe_median")]  # fmt: skip


def figures(result: Result, today: dt.date) -> Iterator[tuple[str, str, Measured]]:
    """Rows of (split, measure, figure). Repeats of one configuration count once."""
    table = profiles(result.entries)
    runs, memory = (sample.columns for sample in samples(table))
    known = circumstances_of(runs)
    sigma = uncertainty.throughput_sigma(runs.efficiency, known)
    memory_sigma = uncertainty.memory_sigma(memory.efficiency, memory.circumstances)
    unknown = uncertainty.throughput_sigma(table[GENERIC], uncertainty.unknown(known))
    skew = table[GENERIC].throughput_skew
    moe = np.asarray(known.experts) > 0
    date = today.isoformat()
    for split in SPLITS:
        width = unknown if split == "new_stack" else sigma
        of_all = _accuracy(result.throughput, split, width, skew=skew)
        of_moe = _accuracy(result.throughput, split, width, moe, skew=skew)
        of_memory = _accuracy(result.memory, split, memory_sigma)
        for measure, value, rows in (
            ("median", of_all.weighted_median_ape, of_all.n),
            ("mean", of_all.weighted_mean_ape, of_all.n),
            ("p90", of_all.weighted_p90_ape, of_all.n),
            ("within_20", of_all.weighted_within_20, of_all.n),
            # With nothing known of the stack, more is inferred: that width is not `width`.
            ("coverage", None if split == "unknown_stack" else of_all.coverage_80, of_all.n),
            ("moe_median", of_moe.weighted_median_ape, of_moe.n),
            ("family_median", of_all.family_median_ape, of_all.n),
            ("memory_median", of_memory.weighted_median_ape, of_memory.n),
            ("memory_p90", of_memory.weighted_p90_ape, of_memory.n),
        ):
            if value is not None:
                yield split, measure, Measured(value=value, rows=rows, date=date)
    inputs = read_runs(RUNS_CSV).inputs.rows(result.throughput.sample.rows)
    # With the widths of this fit, not of the last.
    now = replace(result.throughput.sample, columns=runs)
    for nearness, one, rows in closeness(replace(result.throughput, sample=now), inputs):
        for measure, value in (
            ("median", one.weighted_median_ape),
            ("mean", one.weighted_mean_ape),
            ("p90", one.weighted_p90_ape),
            ("within_20", one.weighted_within_20),
        ):
            if value is not None:
                yield nearness, measure, Measured(value=value, rows=rows, date=date)
    for split in ("grouped", "new_source"):
        for label, chosen in _large_classes(result.throughput.sample, moe):
            part = _accuracy(result.throughput, split, sigma, chosen, skew=skew)
            if part.coverage_80 is not None:
                figure = Measured(value=part.coverage_80, rows=part.n, date=date)
                yield split, f"{CLASS_COVERAGE}{label}", figure


def choice_rows(result: Result, today: dt.date) -> Iterator[tuple[str, str, str, ChoiceFigure]]:
    """Rows of (split, grouping, measure, figure): what the forecast of rows that the fit had not
    seen would have chosen."""
    sample = result.throughput.sample
    inputs = read_runs(RUNS_CSV).inputs.rows(sample.rows)
    for split in CHOICE_SPLITS:
        found = regrets(
            inputs,
            accelerator=sample.accelerator,
            predicted=np.exp(getattr(result.throughput, split)),
            measured=np.exp(sample.log_measured),
        )
        for grouping, one in found.items():
            for measure, estimate in one.figures.items():
                yield (
                    split,
                    grouping,
                    measure,
                    ChoiceFigure(
                        estimate=estimate,
                        groups=len(one.found),
                        configurations=one.configurations,
                        publications=one.publications,
                        date=today.isoformat(),
                    ),
                )


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
    outcome: Outcome, split: str, sigma: Numeric, use: NDArray[np.bool_] | slice = slice(None),
    *, skew: Numeric = 0.0,
) -> Accuracy:  # fmt: skip
    """The errors of the chosen rows, by the fits that left each of them out."""
    sample = outcome.sample
    predicted = np.exp(getattr(outcome, split))
    sigma = sigma * np.sqrt(outcome.left[split])
    return scored(
        predicted=predicted[use],
        measured=np.exp(sample.log_measured)[use],
        refused=np.zeros(len(sample.weight), dtype=bool)[use],
        low=np.asarray(uncertainty.p10(predicted, sigma, skew))[use],
        high=np.asarray(uncertainty.p90(predicted, sigma, skew))[use],
        family=sample.group[use],
        configuration=sample.configuration[use],
    )


def fit_blocks(result: Result, found: list[tuple[str, str, Measured]]) -> tuple[Section, Section]:
    """The printed report: cross-validation, then the fitted values with their intervals."""
    value = {(split, measure): m.value for split, measure, m in found}
    folds = [
        (measure, *(_percent(value.get((split, measure))) for split in SPLITS))
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


def pinned(entries: list[Entry], values: dict[str, float]) -> list[Entry]:
    """The table with some quantities fixed for every stack, so that they are not fitted."""
    known = {e.quantity for e in entries}
    if unknown := [name for name in values if name not in known]:
        raise unknown_name("quantity", unknown[0], known)
    return [
        replace(e, value=values[e.quantity], prior=values[e.quantity], prior_sigma=0.0, fits="")
        if e.quantity in values
        else e
        for e in entries
    ]


def ablation(entries: list[Entry], today: dt.date) -> Table[tuple[str, ...]]:
    """The errors on held-out runs without each ingredient."""
    alike = [e for e in entries if e.stack == GENERIC or e.fits != "throughput"]
    rows = []
    for label, values in INGREDIENTS:
        tried = alike if values is None else pinned(entries, values)
        result = refit(tried, today, only={split for split, _ in FIGURES})
        found = {(s, name): m.value for s, name, m in figures(result, today)}
        rows.append((label, *(_percent(found[name]) for name in FIGURES)))
    names = (f"{split} {measure}" for split, measure in FIGURES)
    return plain("Errors without each ingredient", ("without", *names), rows, numeric=range(1, 9))


def _percent(value: float | None) -> str:
    """A share with one decimal; '' where there is none."""
    return "" if value is None else f"{value:.1%}"
