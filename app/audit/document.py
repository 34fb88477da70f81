"""An audit in sentences, and as blocks: the precisions as a table, the reasons, the checks."""

from __future__ import annotations

from typing import Literal

from app.audit.audit import Audit
from app.audit.checks import TITLES, Check
from app.audit.claim import Claim
from app.audit.money import dollars, usd_of
from app.audit.speed import NAMES, Speed, tflops, times
from app.document import format as fmt
from app.document.blocks import Block, Bullets, Paragraph
from app.document.table import Column, Table

Colour = Literal["red", "orange", "green", "blue", "gray"]
# A result is a word; its colour only repeats the word.
COLOURS: dict[str, Colour] = {
    "fail": "red", "warn": "orange", "pass": "green", "info": "blue", "not given": "gray",
}  # fmt: skip
ORDER = tuple(COLOURS)
# Checks whose sentences are already among the reasons of the verdict.
AMONG_REASONS = ("best_published", "forecast", "dense_peak")

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


def _forecast(s: Speed) -> str:
    """P10 to P90 in tokens/s per GPU: 1,199 to 1,876."""
    if s.forecast is None:
        return fmt.MISSING
    return f"{fmt.count(s.forecast.p10)} to {fmt.count(s.forecast.p90)}"


def _times(over_best: float | None) -> str:
    return fmt.MISSING if over_best is None else times(over_best)


COLUMNS: tuple[Column[Speed], ...] = (
    Column(name="precision", head="Precision", value=lambda s: s.precision, is_text=True),
    Column(name="verdict", head="Verdict", value=lambda s: NAMES[s.verdict], is_text=True),
    Column(
        name="decides", head="Decided by", value=decides_words, is_text=True, wraps=True, width=1
    ),
    Column(name="peak_flops_per_s", head="Dense peak", value=lambda s: s.peak, write=tflops),
    Column(name="share_of_peak", head="Of dense peak", value=lambda s: s.share, write=fmt.percent),
    Column(name="share_by_rule", head="By 6 P", value=lambda s: s.share_by_rule, write=fmt.percent),
    Column(name="over_best", head="Best published", value=lambda s: s.over_best, write=_times),
    Column(
        name="forecast_p10_to_p90", head="Forecast, P10 to P90", short="Forecast", value=_forecast
    ),
)
ON_A_TERMINAL = (
    "precision", "verdict", "share_of_peak", "share_by_rule", "over_best", "forecast_p10_to_p90",
    "decides",
)  # fmt: skip


def precisions(audit: Audit) -> Table[Speed]:
    """One row per precision: the verdict, the peak, the shares, the deciding comparison."""
    return Table(caption="In every precision", columns=COLUMNS, rows=audit.speeds)


def checks(audit: Audit) -> list[tuple[str, Check]]:
    """The checks with their names, worst first."""
    return sorted(audit.checks.items(), key=lambda named: ORDER.index(named[1].status))


def blocks(audit: Audit) -> tuple[Block, ...]:
    """The claim, the verdict with its reasons, every precision, every check."""
    reasons = (
        f"{s.precision}: {' '.join(s.reasons if s is audit.decisive else s.reasons[:1])}"
        for s in audit.speeds
    )
    found = (
        f"{c.status}: {TITLES[name]}. {c.sentence}"
        for name, c in audit.checks.items()
        if name not in AMONG_REASONS
    )
    return (
        Paragraph(claim_sentence(audit.claim)),
        Paragraph(verdict_sentence(audit), strong=True),
        precisions(audit).only(*ON_A_TERMINAL),
        Bullets(tuple(reasons), "Why"),
        Bullets(tuple(found), "Checks"),
        *map(Paragraph, assumption_sentences(audit.claim)),
    )
