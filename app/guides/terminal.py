"""Decisions on a terminal: each published row, what we recommend for it, and why."""

from __future__ import annotations

from collections.abc import Iterable

from app.document.terminal import console, print_wrapped
from app.guides.decision import Decision
from app.guides.decisions import RULES, in_tables, verdict_sentence
from hardware.decision_tables import TABLES


def print_decisions(found: Iterable[Decision]) -> None:
    """Table by table, row by row, in sentences."""
    out = console()
    kept = tuple(found)
    print_wrapped(out, RULES)
    for letter, rows in in_tables(kept).items():
        out.print()
        print_wrapped(out, f"{letter}. {TABLES[letter]}: {verdict_sentence(rows)}")
        for d in rows:
            out.print()
            print_wrapped(
                out, f"{d.advice.case}: {d.advice.advice} ({d.verdict})", indent="    ", first="  "
            )
            if d.job:
                print_wrapped(out, d.job, indent="    ")
            said = f"-> {d.recommends}" + (f" ({d.details})" if d.details else "")
            print_wrapped(out, said, indent="       ", first="    ")
            if d.disagreement:
                print_wrapped(out, f"Not as published: {d.disagreement}", indent="    ")
            if d.other_reasons:
                print_wrapped(out, " ".join(d.other_reasons), indent="    ")
    out.print()
    print_wrapped(out, verdict_sentence(kept))
