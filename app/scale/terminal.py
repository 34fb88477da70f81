"""When and how big on a terminal: sentences and two tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from app.document.terminal import console, print_wrapped
from app.scale import document as tables
from app.scale.points import Scale
from app.scale.words import optimal_sentences, scale_sentences, waiting_sentences
from core.scenario import Scenario

# A line of a terminal has no room for these: they are in the JSON and on the page.
LEFT_OUT = ("Layout", "Goodput")
SHORT = {
    "GPU-hours / 1T": "GPU-h/1T",
    "Cost / 1T": "$/1T",
    "Per day saved": "$/day",
    "Doubling saves": "2x saves",
    "Tokens a parameter": "D/N",
}


def print_scale(scenario: Scenario, found: Scale, usd_per_day: float | None = None) -> None:
    """What each number of GPUs takes and costs, whether to wait, and what to train."""
    out = console()
    for sentence in scale_sentences(scenario, found, usd_per_day):
        print_wrapped(out, sentence)
    kept = [n for n, head in enumerate(tables.SHOWN) if head not in LEFT_OUT]
    rows = [[tables.cells(p)[n] for n in kept] for p in found.points]
    _print(out, [tables.SHOWN[n] for n in kept], rows)
    out.print(
        "Time and cost with failures; P90 with the forecast's own error, too; 1T: 1e12 tokens;\n"
        "$/day: dollars for each day less, from the line above; 2x saves: share of the time.",
        soft_wrap=True,
    )
    out.print("\nWaiting:")
    for sentence in waiting_sentences(found, usd_per_day):
        print_wrapped(out, sentence, indent="   ", first=" - ")
    said = optimal_sentences(found)
    if said:
        out.print("\nCompute-optimal:")
    for sentence in said:
        print_wrapped(out, sentence, indent="   ", first=" - ")
    if found.optimal is not None:
        _print(out, tables.OPTIMAL_SHOWN, tables.optimal_cells(found))


def _print(out: Console, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for head in heads:
        name = SHORT.get(head, head)
        table.add_column(name, justify="left" if head == "Law" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    out.print()
    out.print(table)
