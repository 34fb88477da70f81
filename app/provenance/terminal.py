"""Where the numbers of a plan come from, on a terminal."""

from __future__ import annotations

import datetime as dt

from app.document.terminal import console, print_wrapped
from app.provenance.age import age_of
from app.provenance.document import counts_sentence, source_text
from app.provenance.record import Record, walked


def print_provenance(records: tuple[Record, ...], today: dt.date, *, is_one: bool) -> None:
    """Each number with its formula and kind; of one number all that it rests on, too."""
    out = console()
    for r in walked(records) if is_one else records:
        print_wrapped(out, f"{r.label}: {r.text} ({r.kind}; {r.key})")
        if r.formula:
            print_wrapped(out, r.equation, indent="       ", first="   ")
            print_wrapped(out, f"= {r.with_numbers}", indent="       ", first="   ")
        if r.kind != "computed":
            date = "" if r.source is None else r.source.date
            told = f"{source_text(r)} ({age_of(date, today)})"
            print_wrapped(out, told, indent="       ", first="   from ")
    if not is_one:
        print_wrapped(out, counts_sentence(records))
        print_wrapped(out, "`--number KEY` shows all that one of them rests on.")
