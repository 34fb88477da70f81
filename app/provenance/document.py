"""The numbers of a plan as tables: one row per number, with kind, source and age."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from app.document import format as fmt
from app.document.blocks import Block, Paragraph
from app.document.table import Column, Table
from app.document.vocabulary import KINDS
from app.provenance.age import age_of, is_old_price
from app.provenance.record import NOT_RECORDED, Record, walked

INPUTS = ("Name", "As shown", "Kind", "Source", "Age", "Number")  # columns shown for inputs


def source_text(record: Record) -> str:
    """The source of a number or, if it is computed, what computes it."""
    if record.kind == "computed":
        return record.computed_as.module if record.computed_as else "from the inputs"
    if record.source is None or not record.source.ref:
        return NOT_RECORDED
    return record.source.ref


def source_date(record: Record) -> str:
    """The date of a number's source; '' if not recorded."""
    return "" if record.source is None else record.source.date


def _age(record: Record, today: dt.date) -> str:
    if record.kind == "computed":
        return fmt.MISSING
    age = age_of(source_date(record), today)
    return f"{age}: an old price" if is_old_price(record, today) else age


def _words(name: str, of: Callable[[Record], str], head: str = "") -> Column[Record]:
    return Column(name=name, head=head or name, value=of, is_text=True)


def _number(name: str, of: Callable[[Record], Any], head: str = "") -> Column[Record]:
    def value(r: Record) -> float:
        found = of(r)
        return np.nan if found is None else float(found)

    return Column(name=name, head=head or name, value=value)


def _columns(today: dt.date, used: dict[str, list[str]]) -> tuple[Column[Record], ...]:
    """The columns, named as in the files (docs/provenance.md).

    `used` maps the key of a number to the numbers computed from it.
    """
    return (
        _words("Number", lambda r: r.key, "Symbol"),
        _words("Name", lambda r: r.label, "Input"),
        _number("Value", lambda r: r.value, "In its unit"),
        _words("Unit", lambda r: r.unit),
        _words("As shown", lambda r: r.text, "Value"),
        _words("Kind", lambda r: r.kind),
        _words("Used in", lambda r: " ".join(used.get(r.key, []))),
        _words("Source", source_text),
        _words("Source date", source_date),
        _number("Age (days)", lambda r: fmt.age_days(source_date(r), today)),
        _words("Age", lambda r: _age(r, today)),
        _words("Printed", lambda r: "" if r.source is None else r.source.printed),
        _words("Method", lambda r: m.formula if (m := r.computed_as) else ""),
        _words("After", lambda r: m.source if (m := r.computed_as) else ""),
        _words("Note", lambda r: r.note),
    )


def inputs(record: Record, today: dt.date) -> Table[Record]:
    """The inputs of one number as a table for the page."""
    table = Table(caption="Inputs", columns=_columns(today, {}), rows=record.inputs)
    return table.only(*INPUTS)


def whole(records: tuple[Record, ...], today: dt.date) -> Table[Record]:
    """The table for download: every number and input once, with the numbers that use it."""
    every = tuple(walked(records))
    used: dict[str, list[str]] = {}
    for r in every:
        for i in r.inputs:
            used.setdefault(i.key, []).append(r.key)
    table = Table(caption="Every number", columns=_columns(today, used), rows=every)
    return table.without("Age")


def counts_sentence(records: tuple[Record, ...]) -> str:
    """A sentence with the count of numbers of each kind."""
    count = Counter(r.kind for r in walked(records))
    kinds = ", ".join(f"{fmt.count(count[k])} {k}" for k in KINDS if count[k])
    return f"Behind this plan stand {fmt.count(count.total())} numbers: {kinds}."


def blocks(records: tuple[Record, ...], today: dt.date, *, is_one: bool) -> Iterator[Block]:
    """Each number with its kind and what it rests on; for a single number, all its inputs too."""
    for r in walked(records) if is_one else records:
        yield Paragraph(f"{r.label}: {r.text} ({r.kind}; {r.key})")
        if r.inputs:
            yield Paragraph(f"rests on {', '.join(i.key for i in r.inputs)}", level=1)
        if r.kind != "computed":
            age = age_of(source_date(r), today)
            yield Paragraph(f"from {source_text(r)} ({age})", level=1)
    if not is_one:
        yield Paragraph(counts_sentence(records))
        yield Paragraph("`--number KEY` shows all that one of them rests on.")
