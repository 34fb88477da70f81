"""Tables of published advice, and our own answer to each case.

decision_tables.csv has one row for each concrete case of an advice; rows with the same table and
case belong to one published row. `python -m tests.support.guides` computes the answers again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import parse_qsl

from core.errors import FactError, shown
from hardware.claims import claims
from hardware.tables import check_source, is_date, rows

DECISIONS_CSV = Path(__file__).with_name("decision_tables.csv")
TABLES = {
    "A": "By model size and GPU memory",
    "B": "By what fits where",
    "C": "What it costs against DDP",
    "D": "Fine-tuning by model and number of GPUs",
    "E": "Which software stack",
    "F": "What sharding saves",
}
# strategy: the fastest of several; task: the most that can be trained; memory: a rule of thumb;
# saving: a printed factor; none: no forecast can answer it.
VERDICTS = ("agrees", "agrees in part", "disagrees", "no opinion")
Kind = Literal["strategy", "task", "stack", "memory", "saving", "none"]
SEPARATOR = "|"
_COLUMNS = (
    "id", "table", "case", "advice", "kind", "scenario", "ways", "then", "beside", "claims",
    "gb_per_billion", "gb_more", "note", "source", "source_date",
)  # fmt: skip
_ANSWER = (
    "job", "recommends", "details", "reasons", "verdict", "disagreement", "link", "layout",
    "computed_with", "computed",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One concrete case of one published row, with our answer."""

    id: str
    table: str
    case: str  # as the guide names it
    advice: str
    kind: Kind
    scenario: dict[str, str]  # the fields that make the case concrete
    ways: tuple[str, ...]  # what is advised; for a rule of thumb, the models it is tried on
    then: tuple[str, ...]  # what is advised where that is not enough, in this order
    beside: tuple[str, ...]  # what else is compared
    claims: tuple[str, ...]  # figures printed with the advice, in hardware/claims.csv
    gb_per_billion: float | None
    gb_more: float | None
    note: str  # why there is no answer
    source: str
    source_date: str
    job: str  # the concrete case in words
    recommends: str
    details: str
    reasons: tuple[str, ...]  # sentences
    verdict: str
    disagreement: str  # one sentence; empty if it agrees or there is no opinion
    link: str  # query of the Plan page; empty: no page
    layout: str  # as `runcast estimate --layout` takes it; empty: none
    computed_with: str  # version of Runcast
    computed: str  # date

    @property
    def other_reasons(self) -> tuple[str, ...]:
        """The reasons that the disagreement does not already give."""
        given = self.disagreement.casefold()
        return tuple(r for r in self.reasons if r.rstrip(".").casefold() not in given)


def load_decision_tables(path: Path = DECISIONS_CSV) -> tuple[Advice, ...]:
    """Read the table; a row for which nothing could be computed is an error."""
    found: dict[str, Advice] = {}
    known = {c.id for c in claims()}
    for where, row in rows(path, (*_COLUMNS, *_ANSWER)):
        name = row["id"]
        check_source(where, name, row)
        if not name or name in found:
            raise FactError(f"{where}: the id {shown(name)} is empty or given twice")
        if row["table"] not in TABLES or row["kind"] not in get_args(Kind):
            raise FactError(
                f"{where}: {name} is of table {shown(row['table'])} and kind "
                f"{shown(row['kind'])}, not of {', '.join(TABLES)} and {', '.join(get_args(Kind))}"
            )
        kind = next(k for k in get_args(Kind) if k == row["kind"])
        if row["verdict"] not in VERDICTS or not is_date(row["computed"]):
            raise FactError(
                f"{where}: {name} has the verdict {shown(row['verdict'])} of "
                f"{shown(row['computed'])}, not one of {', '.join(VERDICTS)} with its date"
            )
        needed = [
            "case",
            "advice",
            "recommends",
            "reasons",
            *(["note"] if kind == "none" else ["scenario", "ways"]),
        ]
        needed += {"memory": ["claims", "gb_per_billion", "gb_more"], "saving": ["claims"]}.get(
            kind, []
        )
        if missing := [c for c in needed if not row[c]]:
            raise FactError(f"{where}: {name} has no {', '.join(missing)}")
        if unknown := set(_listed(row["claims"])) - known:
            raise FactError(f"{where}: {name} names the claim {', '.join(sorted(unknown))}")
        try:
            slope, more = (float(row[c]) if row[c] else None for c in ("gb_per_billion", "gb_more"))
            scenario = dict(parse_qsl(row["scenario"], strict_parsing=bool(row["scenario"])))
        except ValueError as e:
            raise FactError(f"{where}: {name}: {e}") from None
        found[name] = Advice(
            id=name, table=row["table"], case=row["case"], advice=row["advice"], kind=kind,
            scenario=scenario, ways=_listed(row["ways"]), then=_listed(row["then"]),
            beside=_listed(row["beside"]), claims=_listed(row["claims"]), gb_per_billion=slope,
            gb_more=more, note=row["note"], source=row["source"], source_date=row["source_date"],
            **{n: row[n] for n in _ANSWER if n != "reasons"}, reasons=_listed(row["reasons"]),
        )  # fmt: skip
    return tuple(found.values())


@cache
def decision_tables() -> tuple[Advice, ...]:
    """The shipped table, read once, in file order."""
    return load_decision_tables()


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(SEPARATOR) if part)
