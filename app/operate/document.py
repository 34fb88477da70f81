"""What `runcast doctor` found, described once: a line a thing, then what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.document.blocks import Block, Paragraph, Section
from app.document.table import Column, Table
from app.operate.doctor import summary
from app.operate.finding import Finding

COLUMNS: tuple[Column[Finding], ...] = (
    Column(name="area", head="Area", value=lambda f: f.area, is_text=True),
    Column(name="what", head="What", value=lambda f: f.name, is_text=True, wraps=True),
    Column(name="state", head="State", value=lambda f: f.state, is_text=True),
    Column(name="found", head="Found", value=lambda f: f.value, is_text=True, wraps=True),
)


def blocks(found: Sequence[Finding]) -> Iterator[Block | Section]:
    """The table, then a sentence for each thing that is not well."""
    areas = ("", *(f.area for f in found))  # each is named once
    rows = (
        replace(f, area="" if f.area == a else f.area) for a, f in zip(areas, found, strict=False)
    )
    yield Table(caption="Findings", columns=COLUMNS, rows=tuple(rows))
    first, *rest = (*(f"{f.state}, {f.name}: {f.todo}" for f in found if f.todo), summary(found))
    yield Section(first, tuple(map(Paragraph, rest)))
