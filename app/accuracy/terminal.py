"""The report of `runcast validate` on a terminal: every figure beside the baseline's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from app.accuracy.section_scores import class_coverages, families
from app.document import format as fmt
from core.evidence.accuracy import (
    FITS_AT_MOST,
    MEMORY_CLASSES,
    TIGHT_AT_MOST,
    Accuracy,
    PairAccuracy,
)
from core.evidence.coverage import CLASS_BAND, LARGE, NOMINAL

if TYPE_CHECKING:
    from app.accuracy.rows import Offence
    from app.accuracy.validate import Report

LABELS_SHOWN = 16  # parts of one table; the JSON has all
KNOBS_SHOWN = 24
FAMILIES_SHOWN = 8
NAMED_SHOWN = 200  # reasons; the JSON has all
PARTS = {
    "accelerator": "accelerator",
    "precision": "precision",
    "architecture": "dense or MoE",
    "framework": "framework",
    "task": "task",
    "stack_profile": "profile of the stack",
}


def print_report(report: Report, console: Console) -> None:
    """Accuracy tables, then what was left out and why."""
    total, refused = len(report.runs), report.num_refused
    console.print(
        f"Runcast {report.runcast_version}, {report.date}: {fmt.count(total)} rows, "
        f"{fmt.count(total - refused)} predicted, {fmt.count(refused)} refused. "
        f"{fmt.count(report.num_used)} used, {fmt.count(len(report.offences))} named below."
    )
    for note in report.file_notes:
        console.print(note)
    console.print(report.note)
    _print_throughput(report, console)
    _print_coverage(report, console)
    _print_families(report, console)
    console.print("\nPeak memory")
    console.print(_memory_table(report))
    console.print(_once_sentence(report.memory.overall))
    _print_left_out(console, report.memory.left_out)
    _print_oom(report, console)
    if report.pairs.by:
        console.print("\nPairs that differ in one knob: predicted against measured change")
        console.print(_pair_table(report))
        _print_left_out(console, report.pairs.left_out)
    _print_named(console, "Refused", report.refusals())
    _print_named(console, "Forecast, but measured what cannot be scored", report.unscored())


def _table(first: str, *heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(first, overflow="fold")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    return table


def _print_throughput(report: Report, console: Console) -> None:
    console.print("\nThroughput (tokens/s): the forecast, and the baseline on the same rows")
    console.print(_throughput_table({"all rows": report.throughput.overall},
                                    {"all rows": report.baseline.overall}, ""))  # fmt: skip
    console.print(_once_sentence(report.throughput.overall))
    for name, title in PARTS.items():
        console.print()
        parts, others = report.throughput.by[name], report.baseline.by[name]
        console.print(_throughput_table(parts, others, f"by {title}"))
    console.print(
        "Baseline: median MFU of accelerator x precision x MoE x framework of other publications."
    )
    _print_left_out(console, report.throughput.left_out)


def _once_sentence(a: Accuracy) -> str:
    """The metrics that repeats of a configuration do not move."""
    return (
        f"Each configuration once ({fmt.count(a.configurations)} in {fmt.count(a.n)} rows): median "
        f"{fmt.percent(a.weighted_median_ape)}, mean {fmt.percent(a.weighted_mean_ape)}, P90 "
        f"{fmt.percent(a.weighted_p90_ape)}, within 20% {fmt.percent(a.weighted_within_20)}, in "
        f"P10-P90 {fmt.percent(a.weighted_coverage_80)}. Median of the medians of "
        f"{fmt.count(a.families)} families (source, model, accelerator): "
        f"{fmt.percent(a.family_median_ape)}."
    )


def _throughput_table(
    parts: Mapping[str, Accuracy], others: Mapping[str, Accuracy], first: str
) -> Table:
    table = _table(
        first, "n", "refused", "median", "mean", "P90", "in 20%", "in P10-P90",
        "base median", "base P90",
    )  # fmt: skip
    for label, a in list(parts.items())[:LABELS_SHOWN]:
        other = others.get(label)
        table.add_row(
            label,
            fmt.count(a.n),
            fmt.count(a.refused),
            *map(fmt.percent, (a.median_ape, a.mean_ape, a.p90_ape, a.within_20, a.coverage_80)),
            fmt.percent(other.median_ape if other else None),
            fmt.percent(other.p90_ape if other else None),
        )
    if len(parts) > LABELS_SHOWN:
        table.add_row(f"and {len(parts) - LABELS_SHOWN} more")
    return table


def _print_coverage(report: Report, console: Console) -> None:
    found = class_coverages(report.throughput)
    shown = [c for c in found if c.accuracy.n >= LARGE or c.verdict != "honest"]
    table = _table("class", "n", "in P10-P90", "exact 90% bounds", "which is")
    for c in shown:
        a = c.accuracy
        bounds = f"{fmt.percent(a.coverage_low)} to {fmt.percent(a.coverage_high)}"
        table.add_row(
            f"{PARTS.get(c.by, c.by)}: {c.label}", fmt.count(a.n), fmt.percent(a.coverage_80),
            bounds, c.verdict,
        )  # fmt: skip
    low, high = map(fmt.percent, CLASS_BAND)
    console.print("\nCoverage of P10 to P90 by class")
    console.print(table)
    console.print(
        f"Classes of {LARGE} rows or more are held to {low} to {high}; smaller ones are named "
        f"where they are significantly below {fmt.percent(NOMINAL)} (binomial, 5%). "
        f"{fmt.count(len(found) - len(shown))} other small classes are not."
    )


def _print_families(report: Report, console: Console) -> None:
    worst = families(report.throughput)[:FAMILIES_SHOWN]
    if not worst:
        return
    console.print("\nWorst families (source, model, accelerator)")
    table = _table("model, accelerator: source", "n", "median", "bias")
    for f in worst:
        table.add_row(
            f"{f.model}, {f.accelerator}: {f.source}",
            fmt.count(f.accuracy.n),
            fmt.percent(f.accuracy.median_ape),
            fmt.percent(f.accuracy.bias),
        )
    console.print(table)


def _memory_table(report: Report) -> Table:
    table = _table("", "n", "refused", "median", "mean", "P90", "in 20%", "in P10-P90", "bias")
    rows = {"all rows": report.memory.overall, **report.memory.by["framework"]}
    for label, a in list(rows.items())[:LABELS_SHOWN]:
        figures = (a.median_ape, a.mean_ape, a.p90_ape, a.within_20, a.coverage_80, a.bias)
        table.add_row(label, fmt.count(a.n), fmt.count(a.refused), *map(fmt.percent, figures))
    return table


def _pair_table(report: Report) -> Table:
    table = _table(
        "knob", "n", "refused", "median log", "if no change", "median", "P90", "direction",
        "beyond 5%",
    )  # fmt: skip
    rows: dict[str, PairAccuracy] = {"all pairs": report.pairs.overall, **report.pairs.by["knob"]}
    for label, a in list(rows.items())[:KNOBS_SHOWN]:
        table.add_row(label, *_pair_cells(a))
    table.add_row("memory, all pairs", *_pair_cells(report.pairs.memory))
    return table


def _pair_cells(a: PairAccuracy) -> list[str]:
    logs = (a.median_log_error, a.no_change_median_log_error)
    figures = (a.median_ape, a.p90_ape, a.direction_right, a.changed_direction_right)
    return [
        fmt.count(a.n),
        fmt.count(a.refused),
        *(fmt.MISSING if x is None else f"{x:.3f}" for x in logs),
        *map(fmt.percent, figures),
    ]


def _print_oom(report: Report, console: Console) -> None:
    oom = report.oom
    console.print(
        f"Out of memory: {fmt.count(oom.n_oom)} runs did, mean predicted probability "
        f"{fmt.percent(oom.mean_probability_of_oom)}, {fmt.percent(oom.oom_found)} found; "
        f"{fmt.count(oom.n_fit)} fitted, mean {fmt.percent(oom.mean_probability_of_fit)}, "
        f"{fmt.percent(oom.false_alarms)} false alarms."
    )
    table = _table("said of their memory", "runs that ran", "share", "runs that ran out")
    bounds = (
        f"P at most {fmt.percent(FITS_AT_MOST)}",
        f"at most {fmt.percent(TIGHT_AT_MOST)}",
        f"above {fmt.percent(TIGHT_AT_MOST)}",
    )
    for name, bound in zip(MEMORY_CLASSES, bounds, strict=True):
        ran = oom.classes_of_fit.get(name, 0)
        table.add_row(
            f"{name} ({bound})",
            fmt.count(ran),
            fmt.percent(ran / oom.n_fit if oom.n_fit else None),
            fmt.count(oom.classes_of_oom.get(name, 0)),
        )
    console.print(table)


def _print_left_out(console: Console, left_out: Mapping[str, int]) -> None:
    if left_out:
        counted = "; ".join(f"{fmt.count(n)} {reason}" for reason, n in left_out.items())
        console.print(f"Not scored: {counted}.")


def _print_named(
    console: Console, title: str, reasons: Sequence[tuple[str, list[Offence]]]
) -> None:
    """Every reason with the lines that have it."""
    if not reasons:
        return
    console.print(f"\n{title}")
    for reason, rows in reasons[:NAMED_SHOWN]:
        console.print(f"{where(rows)}: {reason}")
    if len(reasons) > NAMED_SHOWN:
        left = sum(len(rows) for _, rows in reasons[NAMED_SHOWN:])
        console.print(f"and {fmt.count(left)} rows with other reasons: see --json.")


def where(rows: Sequence[Offence]) -> str:
    """Lines of a file as people write them: line 7 (run a); 12 rows, lines 2-9, 11, 14-16."""
    if len(rows) == 1:
        run = f" (run {rows[0].run_id})" if rows[0].run_id else ""
        return f"line {rows[0].line}{run}"
    spans: list[list[int]] = []
    for line in sorted(row.line for row in rows):
        if spans and line == spans[-1][1] + 1:
            spans[-1][1] = line
        else:
            spans.append([line, line])
    texts = (str(a) if a == b else f"{a}-{b}" for a, b in spans)
    return f"{fmt.count(len(rows))} rows, lines {', '.join(texts)}"
