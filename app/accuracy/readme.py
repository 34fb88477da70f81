"""The accuracy block of a README, rewritten from a validation: `runcast validate --readme`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.accuracy import blind, errors, regret, words
from app.document import format as fmt
from core.errors import RunsError, shown
from hardware.cross_validation import ChoiceFigures, CrossValidation

if TYPE_CHECKING:
    from app.accuracy.validate import Report

BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"
HINT = "<!-- Written by `make validate`: edit what is outside of this block. -->"


def block(report: Report, folds: CrossValidation, choices: ChoiceFigures) -> str:
    """The lines between the markers."""
    a, memory = report.throughput.overall, report.memory.overall
    total = len(report.runs)
    table = errors.headlines(report, folds)
    first, *heads = table.head
    lines = [
        HINT,
        "",
        *_closeness(folds),
        blind.sentence(),
        "",
        f"On the {fmt.count(total)} shipped rows ({report.date}; "
        f"{fmt.count(total - report.num_refused)} forecast, {fmt.count(report.num_refused)} "
        "refused):",
        "",
        _row(f"{first}, {fmt.count(a.n)} scored rows", *heads),
        "|---|---|---|---|---|---|",
        *(_row(*cells) for cells in table.cells()),
        "",
        "| | |",
        "|---|---|",
        _row(
            "median of family medians",
            f"{fmt.percent(a.family_median_ape)} over {fmt.count(a.families)} families (source, "
            f"model, accelerator)" + _folds(folds, "family_median"),
        ),
        *_moe(report, folds),
        _row("largest median errors", words.weak_classes(report.throughput.by)),
        _row("worst families", words.weak_families(report.throughput)),
        _row("inside P10-P90 on unseen rows, by class", " ".join(words.fold_coverage_lines(folds))),
        _row(
            f"peak memory, {fmt.count(memory.n)} rows",
            f"median error {fmt.percent(memory.median_ape)}, mean {fmt.percent(memory.mean_ape)}, "
            f"P90 {fmt.percent(memory.p90_ape)}; {fmt.percent(memory.coverage_80)} inside P10-P90"
            + _folds(folds, "memory_median"),
        ),
        _row("out of memory", words.oom_text(report)),
        _row("one knob changed", words.pairs_sentence(report)),
        _row('knobs no better than "no change"', words.weak_knobs(report)),
        *(_row("choosing by forecast", text) for text in [regret.sentence(choices)] if text),
        "",
    ]
    if note := words.fold_note(report, folds):
        lines += [note, ""]
    return "\n".join(lines)


def _closeness(folds: CrossValidation) -> list[str]:
    """What leads: the errors by what is known of a run."""
    table = errors.by_closeness(folds)
    if not table.rows:
        return []
    rule = "|---" * len(table.head) + "|"
    return [_row(*table.head), rule, *(_row(*cells) for cells in table.cells()), ""]


def _moe(report: Report, folds: CrossValidation) -> list[str]:
    moe = report.throughput.by["architecture"].get("moe")
    if moe is None:
        return []
    text = f"median error {fmt.percent(moe.median_ape)}" + _folds(folds, "moe_median")
    return [_row(f"mixture of experts, {fmt.count(moe.n)} rows", text)]


def _folds(folds: CrossValidation, measure: str) -> str:
    found = words.fold_figures(folds, measure)
    return f" (cross-validated: {found})" if found else ""


def _row(*cells: str) -> str:
    """One line of a Markdown table, escaped so that no cell can break it."""
    safe = (" ".join(c.replace("|", "/").replace("<", "&lt;").split()) for c in cells)
    return f"| {' | '.join(safe)} |"


def rewrite(path: Path, report: Report, folds: CrossValidation, choices: ChoiceFigures) -> None:
    """Write this report's block between the markers of a file."""
    text = path.read_text(encoding="utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    if not 0 <= begin < end or text.count(BEGIN) > 1 or text.count(END) > 1:
        raise RunsError(
            f"{shown(str(path))} needs the line {BEGIN} once and after it the line {END} once: "
            "the accuracy table goes between them."
        )
    new = f"{text[: begin + len(BEGIN)]}\n{block(report, folds, choices)}{text[end:]}"
    path.write_text(new, encoding="utf-8")
