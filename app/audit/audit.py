"""A claim, audited: its speed in every precision of its accelerator, and everything else it says.

Without a precision the verdict is the mildest over those in which a training run on the
accelerator's generation has been published: a claim is doubted only where none of them explains it.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.audit.checks import Check, checks_of
from app.audit.claim import Claim
from app.audit.speed import Speed, precisions_of, speed_of
from app.risk.risk import Risk, risk_of
from core.evidence.claimed_speed import VERDICTS, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What became of a claim."""

    claim: Claim
    speeds: tuple[Speed, ...]
    decisive: Speed  # of the precision that the verdict is of
    counted: tuple[str, ...]  # precisions that the verdict is the mildest of
    risk: Risk | None  # of the forecast's plan, in that precision
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """Over all that counts."""
        return self.decisive.verdict


def audit_of(claim: Claim) -> Audit:
    """Every figure that a claim implies, and the verdict."""
    speeds = tuple(speed_of(claim, p) for p in precisions_of(claim))
    if claim.precision is not None:
        counted = tuple(s for s in speeds if s.precision == claim.precision)
    else:
        counted = tuple(s for s in speeds if s.has_published) or speeds
    decisive = max(counted, key=_mildness)
    risk = None
    if decisive.plan is not None and claim.num_tokens is not None:
        scenario = claim.scenario.model_copy(update={"precision": decisive.precision})
        risk = risk_of(scenario, decisive.plan)
    return Audit(
        claim=claim,
        speeds=speeds,
        decisive=decisive,
        counted=tuple(s.precision for s in counted),
        risk=risk,
        checks=checks_of(claim, speeds, decisive, risk),
    )


def _mildness(s: Speed) -> tuple[int, float]:
    """The verdict; among equals the largest peak where it accuses, else the usual precision."""
    order = VERDICTS.index(s.verdict)
    return order, s.peak if s.verdict not in ("plausible", "conservative") else 0.0
