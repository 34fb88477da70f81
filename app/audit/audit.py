"""The whole audit of a claim: its speed in every precision of its accelerator, and other checks.

If the claim names no precision, the verdict is the mildest over the precisions in which a training
run on the accelerator's generation has been published: a claim is doubted only if none explains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.audit.checks import Check, checks_of
from app.audit.claim import Claim
from app.audit.speed import Speed, precisions_of, speed_of
from app.risk.risk import Risk, risk_of
from core.evidence.claimed_speed import VERDICTS, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result of auditing one claim."""

    claim: Claim
    speeds: tuple[Speed, ...]
    decisive: Speed  # in the precision that decides the verdict
    counted: tuple[str, ...]  # precisions over which the mildest verdict is taken
    risk: Risk | None  # of the forecast's plan, in the decisive precision
    checks: Mapping[str, Check]  # by name, in the order they are shown

    @property
    def verdict(self) -> Verdict:
        """The verdict over all precisions that count."""
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
    """Sort key: the verdict; then the largest peak if it accuses, else the usual precision."""
    order = VERDICTS.index(s.verdict)
    return order, s.peak if s.verdict not in ("plausible", "conservative") else 0.0
