"""Write our answers to published advice into hardware/*.csv, with today's model and prices."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

from app.document import format as fmt
from app.scenario.layout import layout_text
from app.scenario.version import version
from hardware.claims import CLAIMS_CSV, GUIDE_CASES_CSV, PublishedClaim, claims
from hardware.decision_tables import DECISIONS_CSV, SEPARATOR, decision_tables
from tests.support.guides.advice import DECIDE, Decision
from tests.support.guides.claims import EVALUATED, checked
from tests.support.guides.forecasts import OFFLOAD, fixes, forecasts

Cells = dict[str, str]


def advice_cells(d: Decision) -> Cells:
    """Our answer to one case of published advice."""
    return {
        "job": d.job, "recommends": d.recommends, "details": d.details,
        "reasons": SEPARATOR.join(d.reasons), "verdict": d.verdict,
        "disagreement": d.disagreement, "link": urlencode(d.link, safe=",/:"),
        "layout": layout_text(d.run.layout) if d.run else "",
    }  # fmt: skip


def claim_cells(claim: PublishedClaim) -> Cells:
    """Our figure for one published claim."""
    c = checked(claim)
    return {"verdict": c.verdict, "printed": c.printed, "ours": c.ours, "arithmetic": c.arithmetic}


def guide_cases() -> list[Cells]:
    """Our forecasts for cases of the guides, then what makes the first of them fit."""
    cases = [(f.case, f.printed, f.text) for f in forecasts()]
    cases += [
        (
            f"70B on 8 H100, {f'fix {n}' if f.plan else 'no fix'}: {f.change}",
            "the fix" if f.change == OFFLOAD else fmt.MISSING,
            f.text,
        )
        for n, f in enumerate(fixes(), start=1)
    ]
    return [dict(zip(("case", "printed", "forecast"), cells, strict=True)) for cells in cases]


def _update(path: Path, key: str, answers: Mapping[str, Cells]) -> None:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    made = _made()
    _write(path, [row | answers[row[key]] | made if row[key] in answers else row for row in rows])


def _made() -> Cells:
    today = dt.datetime.now(tz=dt.UTC).date()
    return {"computed_with": version(), "computed": today.isoformat()}


def _write(path: Path, rows: list[Cells]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    _update(CLAIMS_CSV, "claim", {c.id: claim_cells(c) for c in claims() if c.id in EVALUATED})
    _update(DECISIONS_CSV, "id", {a.id: advice_cells(DECIDE[a.kind](a)) for a in decision_tables()})
    _write(GUIDE_CASES_CSV, [case | _made() for case in guide_cases()])
