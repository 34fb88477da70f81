"""The report of `runcast validate`: figures next to the baseline's, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from app.accuracy import document, errors, regret, words
from app.accuracy.as_json import nearby_json
from app.accuracy.choices import regrets_of
from app.accuracy.rows import Offence, where
from app.document import format as fmt
from app.document.blocks import Block, Paragraph, Section
from app.document.table import Table
from core.evidence.coverage import CLASS_BAND, LARGE, NOMINAL
from hardware.cross_validation import choice_figures

if TYPE_CHECKING:
    from app.accuracy.validate import Report

LABELS_SHOWN = 16  # parts of one table; the JSON has all
KNOBS_SHOWN = 24
FAMILIES_SHOWN = 8
NAMED_SHOWN = 200  # reasons; the JSON has all


def report_blocks(report: Report) -> tuple[Block | Section, ...]:
    """The report: counts of rows, tables of errors, then the rows left out and why."""
    total, refused = len(report.runs), report.num_refused
    counts = (
        f"Runcast {report.runcast_version}, {report.date}: {fmt.count(total)} rows, "
        f"{fmt.count(total - refused)} predicted, {fmt.count(refused)} refused. "
        f"{fmt.count(report.num_used)} used, {fmt.count(len(report.offences))} named below."
    )
    return (
        *map(Paragraph, (counts, *report.file_notes, *_nearby(report), words.NOTE)),
        Section(
            "Throughput (tokens/s): the forecast, and the baseline on the same rows",
            tuple(_throughput(report)),
        ),
        Section("Coverage of P10 to P90 by class", tuple(_coverage(report))),
        *_families(report),
        Section("Peak memory", tuple(_memory(report))),
        *_pairs(report),
        Section("Choosing by forecast", tuple(_choices(report))),
        *_named("Refused", report.reasons(has_forecast=False)),
        *_named("Forecast, but measured what cannot be scored", report.reasons(has_forecast=True)),
    )


def _nearby(report: Report) -> Iterator[str]:
    """What measured runs did to the forecasts, in one sentence."""
    if found := nearby_json(report.predictions):
        yield (
            f"Measured runs moved {fmt.count(found['moved'])} of "
            f"{fmt.count(found['forecasts'])} forecasts, by "
            f"{fmt.percent(found['moved_by_median'])} at the median; the nearest run is "
            f"{found['nearest_distance_median']:.2g} away at the median, and runs explain "
            f"{fmt.percent(found['variance_explained_mean'])} of what the model leaves open. "
            "No run moves its own forecast."
        )


def _first(table: Table[Any], most: int) -> Iterator[Block]:
    """The first rows of a table, with the number of rows not shown."""
    yield replace(table, rows=table.rows[:most])
    if len(table.rows) > most:
        yield Paragraph(f"and {fmt.count(len(table.rows) - most)} more: see --json.")


def _throughput(report: Report) -> Iterator[Block]:
    yield errors.of_throughput(report)
    yield Paragraph(words.once_sentence(report.throughput.overall))
    for kind in words.KINDS:
        yield from _first(errors.of_throughput(report, kind), LABELS_SHOWN)
    yield Paragraph(
        "Baseline: median MFU of accelerator x precision x MoE x framework of other publications."
    )
    yield from _left_out(report.throughput.left_out)


def _coverage(report: Report) -> Iterator[Block]:
    table = errors.of_classes(report).without("Median error")
    shown = tuple(r for r in table.rows if r.accuracy.n >= LARGE or r.verdict != "honest")
    yield replace(table, rows=shown)
    low, high = map(fmt.percent, CLASS_BAND)
    yield Paragraph(
        f"From and To are exact 90% bounds. Classes of {LARGE} rows or more are held to {low} to "
        f"{high}; smaller ones are named where they are significantly below {fmt.percent(NOMINAL)} "
        f"(binomial, 5%). {fmt.count(len(table.rows) - len(shown))} other small classes are not."
    )


def _families(report: Report) -> Iterator[Section]:
    table = errors.of_families(report)
    worst = replace(table, rows=table.rows[:FAMILIES_SHOWN])
    if worst.rows:
        yield Section("Worst families (source, model, accelerator)", (worst,))


def _memory(report: Report) -> Iterator[Block]:
    yield from _first(errors.of_memory(report), LABELS_SHOWN)
    yield Paragraph(words.once_sentence(report.memory.overall))
    yield from _left_out(report.memory.left_out)
    yield Paragraph(words.oom_figures(report))
    yield document.memory_classes(report)


def _pairs(report: Report) -> Iterator[Section]:
    if report.pairs.by:
        yield Section(
            "Pairs that differ in one knob: predicted against measured change",
            (
                *_first(document.pairs(report).without("Against no change"), KNOBS_SHOWN),
                *_left_out(report.pairs.left_out),
            ),
        )


def _choices(report: Report) -> Iterator[Block]:
    found = regrets_of(report)
    now = regret.of_rows(found)
    shown = regret.table([*now, *regret.of_unseen(choice_figures())])
    if not now:
        yield Paragraph("No three configurations of this file could be chosen between.")
    yield shown.only(*regret.REACHED)
    yield shown.only(*regret.BIASES)
    yield Paragraph(regret.NOTE)
    if now:
        worst = regret.worst_table(regret.worst_groups(found))
        yield worst.without("Source", "Precision")


def _left_out(left_out: Mapping[str, int]) -> Iterator[Block]:
    if left_out:
        counted = "; ".join(f"{fmt.count(n)} {reason}" for reason, n in left_out.items())
        yield Paragraph(f"Not scored: {counted}.")


def _named(title: str, reasons: Sequence[tuple[str, list[Offence]]]) -> Iterator[Section]:
    """Each reason with the lines it applies to."""
    if not reasons:
        return
    lines = [f"{where(rows)}: {reason}" for reason, rows in reasons[:NAMED_SHOWN]]
    if len(reasons) > NAMED_SHOWN:
        left = sum(len(rows) for _, rows in reasons[NAMED_SHOWN:])
        lines.append(f"and {fmt.count(left)} rows with other reasons: see --json.")
    yield Section(title, tuple(map(Paragraph, lines)))
