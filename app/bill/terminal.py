"""A bill on a terminal: sentences, a table, and how each line is worked out."""

from __future__ import annotations

from app.bill import document as tables
from app.bill.bill import Bill, bill_sentences
from app.document.terminal import console, figures_table, print_wrapped
from core.scenario import Scenario


def print_bill(scenario: Scenario, found: Bill) -> None:
    """The answer, every line with its lower, expected and upper figure, and what it rests on."""
    out = console()
    for sentence in bill_sentences(scenario, found):
        print_wrapped(out, sentence)
    table = figures_table("", "Lower", "Expected", "Upper")
    rows = tables.rows(found)
    for *cells, _ in rows:
        table.add_row(*cells)
    out.print()
    out.print(table)
    out.print("\nWorked out:")
    for label, _, _, _, how in rows:
        print_wrapped(out, f"{label}: {how}", indent="   ", first=" - ")
