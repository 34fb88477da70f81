"""Published advice beside our answers: counts, blocks, and Markdown for the boxes of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.document.blocks import Block, Paragraph, Section
from app.document.escape import as_text
from hardware.decision_tables import TABLES, VERDICTS, Advice, decision_tables

RULES = (
    "Each published row is asked about concrete jobs, on the usual machine of the GPU. Of what "
    "fits, strategies within 5% of the fastest cannot be told apart by a forecast, so the simplest "
    "of them is recommended, with offload only where it is faster by more than that, or nothing "
    "fits without it. Published advice agrees if it is as fast as that, agrees in part if it costs "
    "up to 25% more or some of it does not run, and disagrees if all of it costs more or none of "
    "it runs. On the same GPUs, slower by a share is dearer by the same share."
)
MARKS: Mapping[str, str] = {
    "agrees": ":material/check_circle:",
    "agrees in part": ":material/contrast:",
    "disagrees": ":material/cancel:",
    "no opinion": ":material/remove:",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One concrete case in three cells: side by side, or stacked on a phone."""

    job: str
    recommends: str
    why: str


def rows_of(tables: Iterable[str]) -> tuple[Advice, ...]:
    """Every row of some tables, in table order."""
    return tuple(a for table in tables for a in decision_tables() if a.table == table)


def in_tables(rows: Iterable[Advice]) -> dict[str, list[Advice]]:
    """Group rows under the letters of their tables."""
    tables: dict[str, list[Advice]] = {}
    for row in rows:
        tables.setdefault(row.table, []).append(row)
    return tables


def counts(rows: Iterable[Advice]) -> dict[str, int]:
    """The number of cases with each verdict."""
    counted = Counter(row.verdict for row in rows)
    return {verdict: counted[verdict] for verdict in VERDICTS}


def verdict_sentence(rows: Iterable[Advice]) -> str:
    """Summary such as: 63 cases of 36 published rows: 29 agree, 24 agree in part, 7 disagree, 3 no
    opinion."""
    kept = list(rows)
    published = len({(row.table, row.case) for row in kept})
    verdicts = ", ".join(
        f"{n} {v if n == 1 else v.replace('agrees', 'agree')}" for v, n in counts(kept).items() if n
    )
    return (
        f"{len(kept)} case{'' if len(kept) == 1 else 's'} of {published} published "
        f"row{'' if published == 1 else 's'}: {verdicts}."
    )


def computed_sentence(made: Iterable[tuple[str, str]]) -> str:
    """When answers were computed, from pairs of version and date.

    >>> computed_sentence([("0.1.0", "2026-11-28"), ("0.1.0", "2026-11-28")])
    'Computed with Runcast 0.1.0 on 2026-11-28.'
    """
    each = (f"Runcast {version} on {date}" for version, date in made)
    return f"Computed with {'; '.join(dict.fromkeys(each))}."


def sources_line(printed: Iterable[tuple[str, str]]) -> str:
    """Where and when figures are printed, each source once. A date that the source already ends
    with is not repeated.

    >>> sources_line([("a paper", "2024"), ("a page of 2025", "2025"), ("a paper", "2024")])
    'Printed in: a paper (2024); a page of 2025.'
    """
    sources = (s if s.endswith(date) else f"{s} ({date})" for s, date in printed)
    return f"Printed in: {'; '.join(dict.fromkeys(sources))}."


def cases(rows: Iterable[Advice], addresses: Mapping[str, str]) -> dict[str, list[CaseRow]]:
    """Published rows, in the order of the table, and the concrete cases tested against each.

    `addresses` maps the id of a row to the link that opens its case, if there is one.
    """
    under: dict[str, list[CaseRow]] = {}
    for row in rows:
        published = f"**{as_text(row.case)}**: {as_text(row.advice)}"
        under.setdefault(published, []).append(_case(row, addresses.get(row.id)))
    return under


def _case(row: Advice, address: str | None) -> CaseRow:
    verdict = f"{MARKS[row.verdict]} {row.verdict}"
    recommends = f"**{as_text(row.recommends)}**"
    if row.details:
        recommends += f"  \n{as_text(row.details)}"
    why = f"**{as_text(row.disagreement)}**  \n" if row.disagreement else ""
    return CaseRow(
        job=f"{verdict}  \n{as_text(row.job)}" if row.job else verdict,
        recommends=f"{recommends}  \n[Open as a plan]({address})" if address else recommends,
        why=why + as_text(" ".join(row.other_reasons)),
    )


def blocks(rows: Iterable[Advice]) -> Iterator[Block | Section]:
    """For each row of each table: what is published, what we recommend, and why."""
    kept = tuple(rows)
    yield Paragraph(f"{RULES} {computed_sentence((r.computed_with, r.computed) for r in kept)}")
    for letter, inside in in_tables(kept).items():
        yield Section(f"{letter}. {TABLES[letter]}: {verdict_sentence(inside)}", ())
        for row in inside:
            yield Section(f"{row.case}: {row.advice} ({row.verdict})", tuple(_parts(row)))
    yield Section(verdict_sentence(kept), ())


def _parts(row: Advice) -> Iterator[Paragraph]:
    disagreement = f"Not as published: {row.disagreement}" if row.disagreement else ""
    recommends = f"-> {row.recommends}" + (f" ({row.details})" if row.details else "")
    for text in (row.job, recommends, disagreement, " ".join(row.other_reasons)):
        if text:
            yield Paragraph(text, level=1)
