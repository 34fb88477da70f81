"""The section of a report about the stages of a programme."""

from __future__ import annotations

from app.document import chart_files
from app.document.blocks import Block, Bullets, Figure, Paragraph, Section
from app.document.pictures import THEME
from app.programme import charts, document
from app.programme.programme import programme_of
from app.programme.words import ASSUMED, sentences
from app.report.answer import WIDTH_PX
from core.scenario import Scenario


def programme_sections(scenario: Scenario) -> tuple[Section, ...]:
    """The answer for the stages, their timeline and tables; () for one run."""
    if not scenario.stages:
        return ()
    found = programme_of(scenario)
    first, *more = sentences(scenario, found)
    blocks: list[Block] = [Paragraph(first, strong=True), *map(Paragraph, more)]
    if found.contracts:
        stages, *tables = document.tables(found)
        chart = charts.timeline(document.bars(found.best), theme=THEME)
        timeline = Figure(
            name="programme",
            alt=document.alt(found.best),
            caption=charts.LEGEND,
            spec={**chart_files.spec_of(chart), "width": WIDTH_PX},
            numbers=stages,
        )
        blocks += [timeline, *tables, Bullets(ASSUMED, "Assumed of the stages")]
    return (Section("Programme of runs", tuple(blocks)),)
