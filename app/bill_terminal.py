"""A bill on a terminal: sentences, a table, and how each line is worked out."""

from __future__ import annotations

from rich.table import Table

from app import bill_tables as tables
from app.bill import Bill, bill_sentences
from app.terminal import console, print_wrapped
from core.scenario import Scenario


def print_bill(scenario: Scenario, found: Bill) -> None:
    """The answer, every line with its lower, expected and upper figure, and what it rests on."""
    out = console()
    for sentence in bill_sentences(scenario, found):
        print_wrapped(out, sentence)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for n, head in enumerate(("", "Lower", "Expected", "Upper")):
        table.add_column(head, justify="right" if n else "left", no_wrap=True)
    rows = tables.rows(found)
    for *cells, _ in rows:
        table.add_row(*cells)
    out.print()
    out.print(table)
    out.print("\nWorked out:")
    for label, _, _, _, how in rows:
        print_wrapped(out, f"{label}: {how}", indent="   ", first=" - ")
