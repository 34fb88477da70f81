"""Every published claim with our own figure: applies sums.py to facts."""

from __future__ import annotations

from dataclasses import dataclass

from core.evidence.published_claims import Verdict
from hardware.claims import PublishedClaim
from hardware.claims import claims as published
from tests.support.guides import (
    against_ddp,
    fixes,
    inputs,
    memory,
    runs,
    times,
    tuning,
)
from tests.support.guides.claim_text import Evaluations, Ours, span
from tests.support.guides.sums import verdict

_TOPICS = (
    memory, fixes, tuning, runs, times, against_ddp, inputs
)  # fmt: skip
EVALUATED: Evaluations = {
    name: evaluate for topic in _TOPICS for name, evaluate in topic.EVALUATED.items()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One claim, our finding, and the verdict of the arithmetic."""

    claim: PublishedClaim
    ours: Ours
    verdict: Verdict

    @property
    def printed_text(self) -> str:
        """The figure as the guide prints it."""
        return span(self.claim.low, self.claim.high, self.claim.unit)

    @property
    def ours_text(self) -> str:
        """Our figure in the unit of the guide."""
        return span(self.ours.low, self.ours.high, self.claim.unit, self.ours.digits)


def checked(claim: PublishedClaim) -> Checked:
    """Work out one claim. The verdict comes from the arithmetic, not from the table."""
    ours = EVALUATED[claim.id]()
    return Checked(
        claim=claim,
        ours=ours,
        verdict=verdict(
            rule=claim.rule,
            ours_low=ours.low,
            ours_high=ours.high,
            printed_low=claim.low,
            printed_high=claim.high,
            tolerance=claim.tolerance,
            limit=ours.limit,
        ),
    )


def all_checked() -> tuple[Checked, ...]:
    """Every claim that is worked out again, in table order: prices of 2026 stay as they were."""
    return tuple(checked(c) for c in published() if c.id in EVALUATED)
