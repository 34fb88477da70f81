"""Sentences of an audit."""

from __future__ import annotations

from app.audit.audit import Audit
from app.audit.claim import Claim
from app.audit.money import dollars, usd_of
from app.audit.speed import NAMES, Speed, times
from app.document import format as fmt

RULE = (
    "Impossible is a claim above the dense peak of the accelerator. Not credible is one that needs "
    "more than 1.05 times the FLOP/s of the best published training run of its class (accelerator, "
    "width of the matmuls, dense or experts, a model of half to twice the size), or whose weights, "
    "gradients and optimizer states do not fit the memory. Optimistic is above the P90 of our "
    "forecast, or above every published run of its class; plausible is between P10 and P90; "
    "conservative is below."
)
AGAINST = {
    "dense_peak": "the dense peak",
    "best_published": "the best published run",
    "memory": "the memory",
    "forecast_p90": "the P90 of our forecast",
    "forecast_p10": "the P10 of our forecast",
}


def claim_sentence(claim: Claim) -> str:
    """The claim in a sentence: the model, the GPUs, how long and for how much."""
    tokens = "" if claim.num_tokens is None else f" on {fmt.tokens(claim.num_tokens)} tokens"
    took = "" if claim.hours is None else f", {fmt.days(claim.hours)}"
    hours = claim.all_gpu_hours
    spent = "" if hours is None else f", {fmt.count(hours)} GPU-hours"
    usd = usd_of(claim)
    paid = "" if usd is None else f", {dollars(usd)}"
    return (
        f"Claimed: {claim.model.label}{tokens} with {claim.num_gpus:,} {claim.chip.name}{took}"
        f"{spent}{paid}: {fmt.count(claim.rate)} tokens/s a GPU."
    )


def verdict_sentence(audit: Audit) -> str:
    """The verdict, its precision, and the number that decides it."""
    s = audit.decisive
    name = NAMES[audit.verdict]
    of = f" in {s.precision}"
    if len(audit.counted) > 1:
        of += f", the mildest of {', '.join(audit.counted[:-1])} and {audit.counted[-1]}"
    return f"{name.capitalize()}{of}: {decides_words(s)}."


def decides_words(s: Speed) -> str:
    """The comparison that decides a verdict, in words."""
    d = s.decides
    if d.ratio is None:
        return "the model states alone do not fit the memory"
    if s.verdict == "plausible" and s.forecast is not None:
        p10, p90 = fmt.count(s.forecast.p10), fmt.count(s.forecast.p90)
        return f"{fmt.count(d.claimed)} tokens/s a GPU is between P10 and P90, {p10} and {p90}"
    if d.against == "dense_peak":
        return f"{fmt.percent(d.ratio)} of the dense peak"
    return f"{times(d.ratio)} {AGAINST[d.against]}"


def assumption_sentences(claim: Claim) -> tuple[str, ...]:
    """Values that were not given, and what was assumed instead."""
    return tuple(f"Not given and assumed: {a}" for a in claim.assumptions)
