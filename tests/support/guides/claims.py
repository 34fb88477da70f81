"""Published claims with our figure of today: the model works out those that depend on it.

The arithmetic of the others stands in hardware/claims.csv; tests/whole/test_published_advice.py
has their figures worked out by hand.
"""

from __future__ import annotations

from dataclasses import replace

from core.evidence.published_claims import Rule, Verdict
from hardware.claims import PublishedClaim
from hardware.claims import claims as published
from tests.support.guides import forecasts, memory, ratios
from tests.support.guides.claim_text import Evaluations, span

EVALUATED: Evaluations = {
    name: evaluate
    for topic in (memory, forecasts, ratios)
    for name, evaluate in topic.EVALUATED.items()
}


def printed(name: str) -> PublishedClaim:
    """The row of the claims table with this name."""
    return next(c for c in published() if c.id == name)


def checked(claim: PublishedClaim) -> PublishedClaim:
    """The claim with the figure and the verdict of today's model; others stay as they are."""
    if claim.id not in EVALUATED:
        return claim
    ours = EVALUATED[claim.id]()
    return replace(
        claim,
        printed=span(claim.low, claim.high, claim.unit),
        ours=span(ours.low, ours.high, claim.unit, ours.digits),
        arithmetic=ours.arithmetic,
        verdict=verdict(
            rule=claim.rule, ours_low=ours.low, ours_high=ours.high, printed_low=claim.low,
            printed_high=claim.high, tolerance=claim.tolerance,
        ),
    )  # fmt: skip


def verdict(
    *,
    rule: Rule,
    ours_low: float,
    ours_high: float,
    printed_low: float,
    printed_high: float,
    tolerance: float,
    limit: float | None = None,
) -> Verdict:
    """Verdict of the arithmetic on a printed figure.

    `equals`: our range meets the printed one, widened by `tolerance` (a fraction: how exactly the
    figure is printed). Where it does not, but `limit` (our figure in the best case: ever more GPUs,
    the best run ever published) does, the figure is a limit. `fits`: what we need is at most what
    is printed. `input`: a figure that cannot be derived here; it is shown with its source.
    """
    low, high = printed_low * (1 - tolerance), printed_high * (1 + tolerance)
    if rule == "input":
        return "input"
    if rule == "fits":
        return "reproduced" if ours_high <= high else "refuted"
    if ours_low <= high and ours_high >= low:
        return "reproduced"
    if limit is not None and low <= limit <= high:
        return "reproduced as a limit"
    return "refuted"
