"""A claim over a whole programme: its GPU-hours, days or dollars against the forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.document import format as fmt
from app.document.blocks import Block, Paragraph, Row
from app.document.table import plain
from app.programme.contract import Contract
from app.programme.words import answer_sentence
from core.cost.uncertain import Uncertain
from core.errors import ScenarioError
from core.scenario import Scenario

DAY_H = 24.0
NAMES = {"gpu_hours": "GPU-hours", "days": "Days", "usd": "Dollars"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One figure of a claim, and the forecast of it."""

    what: str  # gpu_hours, days or usd
    claimed: float
    forecast: Uncertain

    @property
    def verdict(self) -> str:
        """In the words of an audit: within P10 to P90 a claim is plausible."""
        if self.claimed < self.forecast.p10:
            return "optimistic"
        return "plausible" if self.claimed <= self.forecast.p90 else "conservative"


def compared(best: Contract, claims: Mapping[str, float]) -> tuple[Compared, ...]:
    """Each figure of a claim against that of the recommended contract. GPU-hours are those of the
    stages, without the start, and as unsure as the time."""
    hours = best.cost.hours
    of = {
        "gpu_hours": hours.times(best.gpu_hours / hours.mean),
        "days": hours.times(1 / DAY_H),
        "usd": best.cost.total if best.cost.has_price else None,
    }
    found = []
    for what, claimed in claims.items():
        if (forecast := of[what]) is None:
            raise ScenarioError("No price of these machines is known, so dollars say nothing.")
        found.append(Compared(what=what, claimed=claimed, forecast=forecast))
    if not found:
        raise ScenarioError(
            "A claim over a whole programme needs --gpu-hours, --days or --usd of all stages."
        )
    return tuple(found)


def blocks(scenario: Scenario, best: Contract, found: tuple[Compared, ...]) -> tuple[Block, ...]:
    """The verdicts, and the forecast that they stand on."""
    rows: list[Row] = [
        (
            NAMES[c.what],
            *(fmt.count(x) for x in (c.claimed, c.forecast.mean, c.forecast.p10,
                                     c.forecast.p90)),
            f"{c.claimed / c.forecast.mean:.2f}",
            c.verdict,
        )
        for c in found
    ]  # fmt: skip
    head = ("Of all stages", "Claimed", "Expected", "P10", "P90", "Times", "Verdict")
    return (
        Paragraph(answer_sentence(scenario, best)),
        plain("The claim against the forecast", head, rows, numeric=(1, 2, 3, 4, 5)),
    )


def claim_json(best: Contract, found: tuple[Compared, ...]) -> dict[str, Any]:
    """The document of `runcast audit --programme --json`."""
    return {
        "schema_version": 1,
        "contract": best.id,
        "claims": [
            {
                "what": c.what, "claimed": c.claimed, "expected": c.forecast.mean,
                "p10": c.forecast.p10, "p90": c.forecast.p90, "verdict": c.verdict,
            }
            for c in found
        ],
    }  # fmt: skip
