"""Explanations on a terminal: sentences, then small tables."""

from __future__ import annotations

import pandas as pd
from rich.console import Console
from rich.table import Table

from app.document import format as fmt
from app.document import vocabulary
from app.document.terminal import console, print_wrapped
from app.explain import document as tables
from app.explain import words as told
from app.explain.explained import Against, Named, Why
from app.explain.question import Explanation
from app.explain.sensitivity import Again, Sensitivity
from core.explain.bottleneck import Faster

INPUTS = 12  # on a terminal; --json has all


def print_explanation(found: Explanation) -> None:
    """What was asked, section by section."""
    out = console()
    if found.nothing_fits:
        print_wrapped(out, found.nothing_fits)
        out.print()
    if found.plan is not None:
        print_wrapped(
            out,
            f"Plan {found.plan.rank}: {fmt.layout(found.plan.layout)} on "
            f"{vocabulary.machine(found.plan)}, "
            f"{fmt.seconds(sum(found.plan.step_s.values()))} a step.",
        )
        out.print()
    for named in found.named:
        _print_named(out, named)
    if found.difference is not None:
        _print_against(out, found.difference, _other(found))
    if found.why is not None:
        _print_why(out, found.why)
    if found.faster is not None:
        _print_faster(out, found.faster)
    if found.sensitivity is not None:
        _print_sensitivity(out, found.sensitivity, found.again)


def _other(found: Explanation) -> str:
    """What the second of the two that are compared is called."""
    if len(found.named) > 1 or found.plan is None:
        return "The other"
    memory = ", with the memory," if found.named[0].shortage else ""
    return f"Against plan {found.plan.rank}{memory} it"


def _print_named(out: Console, named: Named) -> None:
    for sentence in told.named_sentences(named):
        print_wrapped(out, sentence)
    print_wrapped(out, told.changes_sentence(named.changes, fits=named.verdict == "fits"))
    if named.changes.ranked:
        _print_table(out, tables.changes(named))
    out.print()


def _print_against(out: Console, against: Against, other: str) -> None:
    print_wrapped(out, told.difference_sentence(against.step, other))
    if against.step.terms:
        _print_table(out, tables.terms(against.step))
    print_wrapped(out, told.run_sentence(against))
    out.print()


def _print_why(out: Console, why: Why) -> None:
    if why.runner_up is not None:
        out.print("Against the next plan")
        _print_against(out, why.runner_up, why.runner_up.label)
    if why.next_layout is not None:
        out.print(
            f"Against the best of {fmt.count(why.next_changes.num_fit)} layouts that fit and "
            "differ in one or two knobs"
        )
        _print_against(out, why.next_layout, why.next_layout.label)
    _print_faster(out, why.faster)


def _print_faster(out: Console, faster: Faster) -> None:
    out.print("What would make it faster")
    print_wrapped(out, told.next_sentence(faster))
    _print_table(out, tables.bottlenecks(faster))
    out.print()


def _print_sensitivity(out: Console, found: Sensitivity, again: tuple[Again, ...]) -> None:
    out.print(f"Each input {fmt.percent(found.change)} down and up, the layout as it is")
    _print_table(out, tables.sensitivity(found).head(INPUTS))
    if again:
        out.print("\nThe same with the best layout of these machines searched again")
        _print_table(out, tables.again(again))
    out.print()
    print_wrapped(out, told.unknowns_sentence(found.unknowns))


def _print_table(out: Console, frame: pd.DataFrame) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in frame.columns:
        table.add_column(str(head), overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(str(cell) for cell in row))
    out.print(table)
