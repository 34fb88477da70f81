"""Guide decisions as blocks, one table after another, and as Markdown for the boxes of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.document.blocks import Block, Paragraph, Section
from app.document.escape import as_text
from app.guides.decision import Decision, Verdict
from app.guides.decisions import RULES, in_tables, verdict_sentence
from hardware.decision_tables import TABLES

MARKS: Mapping[Verdict, str] = {
    "agrees": ":material/check_circle:",
    "agrees in part": ":material/contrast:",
    "disagrees": ":material/cancel:",
    "no opinion": ":material/remove:",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One concrete case in three cells: side by side, or stacked on a phone."""

    job: str
    recommends: str
    why: str


def cases(found: Iterable[Decision], addresses: Mapping[str, str]) -> dict[str, list[Row]]:
    """Published rows, in the order of the table, and the concrete cases tested against each.

    `addresses` maps the id of a decision to the link that opens its case, if there is one.
    """
    under: dict[str, list[Row]] = {}
    for d in found:
        published = f"**{as_text(d.advice.case)}**: {as_text(d.advice.advice)}"
        under.setdefault(published, []).append(_row(d, addresses.get(d.advice.id)))
    return under


def _row(d: Decision, address: str | None) -> Row:
    verdict = f"{MARKS[d.verdict]} {d.verdict}"
    recommends = f"**{as_text(d.recommends)}**"
    if d.details:
        recommends += f"  \n{as_text(d.details)}"
    why = f"**{as_text(d.disagreement)}**  \n" if d.disagreement else ""
    return Row(
        job=f"{verdict}  \n{as_text(d.job)}" if d.job else verdict,
        recommends=f"{recommends}  \n[Open as a plan]({address})" if address else recommends,
        why=why + as_text(" ".join(d.other_reasons)),
    )


def blocks(found: Iterable[Decision]) -> Iterator[Block | Section]:
    """For each row of each table: what is published, what we recommend, and why."""
    kept = tuple(found)
    yield Paragraph(RULES)
    for letter, rows in in_tables(kept).items():
        yield Section(f"{letter}. {TABLES[letter]}: {verdict_sentence(rows)}", ())
        for d in rows:
            yield Section(f"{d.advice.case}: {d.advice.advice} ({d.verdict})", tuple(_parts(d)))
    yield Section(verdict_sentence(kept), ())


def _parts(d: Decision) -> Iterator[Paragraph]:
    disagreement = f"Not as published: {d.disagreement}" if d.disagreement else ""
    recommends = f"-> {d.recommends}" + (f" ({d.details})" if d.details else "")
    for text in (d.job, recommends, disagreement, " ".join(d.other_reasons)):
        if text:
            yield Paragraph(text, level=1)
