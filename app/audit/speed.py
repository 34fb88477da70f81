"""A claim's speed in one precision: against the dense peak, the best published run, the forecast.

The verdict follows core/evidence/claimed_speed.py; `decides` is the comparison that it rests on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.audit.claim import Claim
from app.audit.published import Best, best_of, peak_flops_per_s, published_bits
from app.document import format as fmt
from app.forecast.answer import answer
from core.evidence import claimed_speed
from core.evidence.claimed_speed import MARGIN, Verdict
from core.evidence.published_claims import ACCOUNTINGS, state_bytes
from core.layout.precision import precision
from core.machine.accelerator import Source, offers_precision
from core.model.transformer import active_params, is_moe, total_params
from core.numeric import as_float
from core.search.plan import Interval, Plan
from core.units import DAY_S

USUAL = ("bf16", "fp8", "nvfp4")  # one recipe per width of matmuls
NAMES = {
    "impossible": "impossible",
    "not_credible": "not credible",
    "optimistic": "optimistic",
    "plausible": "plausible",
    "conservative": "conservative",
}
PEAKS = {16: "bf16_flops_per_s", 8: "fp8_flops_per_s", 4: "fp4_flops_per_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decides:
    """The comparison that a verdict rests on: `claimed` against `limit`, in one unit."""

    against: str  # dense_peak, best_published, memory, forecast_p90, forecast_p10
    claimed: float
    limit: float | None
    unit: str

    @property
    def ratio(self) -> float | None:
        """Claimed over the limit."""
        return self.claimed / self.limit if self.limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One claim in one precision. FLOP/s and tokens/s are of one GPU."""

    precision: str
    bits: int
    peak: float
    peak_source: Source | None
    rule_flops_per_s: float  # by 6 P
    flops_per_s: float  # by 6 P and causal attention: the figure that is judged
    blended_peak: float  # with attention and LM head in 16 bits
    has_published: bool  # a run on this generation with matmuls of this width
    best: Best | None
    days_at_best: float | None  # of the run, at the best run's FLOP/s
    plan: Plan | None  # the fastest plan of the forecast
    forecast: Interval | None
    no_forecast: str  # why there is none
    fits: bool
    verdict: Verdict
    decides: Decides
    peak_sentence: str = ""
    best_sentence: str = ""
    forecast_sentence: str = ""

    @property
    def share_by_rule(self) -> float:
        """Share of the dense peak, by 6 P."""
        return self.rule_flops_per_s / self.peak

    @property
    def share(self) -> float:
        """Share of the dense peak, with causal attention."""
        return self.flops_per_s / self.peak

    @property
    def reasons(self) -> tuple[str, ...]:
        """The comparisons in sentences, the one that decides first."""
        found = {
            "dense_peak": self.peak_sentence,
            "best_published": self.best_sentence,
            "forecast": self.forecast_sentence,
        }
        against = self.decides.against
        first = against if against in found else "forecast"
        return (found.pop(first), *found.values())

    @property
    def over_best(self) -> float | None:
        """The claim as a multiple of the best published run."""
        return None if self.best is None else self.flops_per_s / self.best.flops_per_s


def rule_flops_per_token(claim: Claim) -> float:
    """6 P, with the parameters that the claim gives, else the model's active parameters."""
    if claim.params is not None:
        return 6 * claim.params
    return as_float(claimed_speed.rule_flops_per_token(claim.model.transformer))


def flops_per_token(claim: Claim) -> float:
    """FLOPs of one token: 6 P and causal attention at the sequence length."""
    seq_len = float(claim.scenario.seq_len)
    attention = claimed_speed.attention_flops_per_token(claim.model.transformer, seq_len)
    return rule_flops_per_token(claim) + as_float(attention)


def precisions_of(claim: Claim) -> tuple[str, ...]:
    """One precision per width of matmuls that the accelerator has, and the claimed one."""
    usual = ("fp16" if claim.chip.fp16_only else USUAL[0], *USUAL[1:])
    found = [
        p
        for p in usual
        if offers_precision(claim.chip, name=p, matmul_bits=precision(p).matmul_bits)
    ]
    if claim.precision is not None and claim.precision not in found:
        found.append(claim.precision)
    return tuple(found)


def speed_of(claim: Claim, name: str) -> Speed:
    """The claim in one precision, judged."""
    bits = precision(name).matmul_bits
    chip, model = claim.chip, claim.model.transformer
    peak = peak_flops_per_s(chip, bits) or chip.bf16_flops_per_s
    flops = claim.rate * flops_per_token(claim)
    best = best_of(
        chip,
        bits=bits,
        has_experts=bool(np.asarray(is_moe(model))),
        active=claim.params or as_float(active_params(model)),
    )
    plan, no_forecast = _fastest(claim, name)
    n = claim.num_gpus
    forecast = None if plan is None else Interval(
        p10=plan.tokens_per_s.p10 / n, p50=plan.tokens_per_s.p50 / n, p90=plan.tokens_per_s.p90 / n
    )  # fmt: skip
    fits = plan is not None or states_fit(claim)
    verdict = claimed_speed.speed_verdict(
        share_of_peak=flops / peak,
        over_best=None if best is None else flops / best.flops_per_s,
        over_p10=None if forecast is None else claim.rate / forecast.p10,
        over_p90=None if forecast is None else claim.rate / forecast.p90,
        fits=fits,
    )
    low = as_float(claimed_speed.low_precision_share(model, float(claim.scenario.seq_len)))
    speed = Speed(
        precision=name,
        bits=bits,
        peak=peak,
        peak_source=chip.sources.get(PEAKS[bits]),
        rule_flops_per_s=claim.rate * rule_flops_per_token(claim),
        flops_per_s=flops,
        blended_peak=as_float(
            claimed_speed.blended_peak(
                share=low, low_flops_per_s=peak, flops_per_s=chip.bf16_flops_per_s
            )
        ),
        has_published=bits in published_bits(chip),
        best=best,
        days_at_best=_days_at(claim, best),
        plan=plan,
        forecast=forecast,
        no_forecast=no_forecast,
        fits=fits,
        verdict=verdict,
        decides=_decides(claim, verdict, flops, peak, best, forecast, fits=fits),
    )
    return _in_words(claim, speed)


def _fastest(claim: Claim, name: str) -> tuple[Plan | None, str]:
    """The fastest plan, or why there is none; if nothing fits, also tried with a chunked loss."""
    why = ""
    for chunked in (False, True):
        scenario = claim.scenario.model_copy(update={"precision": name, "chunked_loss": chunked})
        found = answer(scenario, top=1)
        if found.plans:
            return found.plans[0], ""
        why = why or found.nothing_fits or "No layout cuts the model over so many GPUs."
    return None, why


def states_fit(claim: Claim) -> bool:
    """Whether weights, gradients and optimizer states alone, at 16 bytes per parameter, fit in the
    GPUs' memory. A forecast may find no layout for a run that really took place; this bound holds
    for every run."""
    params = as_float(total_params(claim.model.transformer))
    states = state_bytes(num_params=params, bytes_per_param=ACCOUNTINGS[0].total_bytes)
    return as_float(states) <= claim.num_gpus * claim.chip.memory_bytes


def _days_at(claim: Claim, best: Best | None) -> float | None:
    if best is None or claim.num_tokens is None:
        return None
    per_gpu = best.flops_per_s / flops_per_token(claim)
    return claim.num_tokens / (per_gpu * claim.num_gpus) / DAY_S


def _decides(
    claim: Claim,
    verdict: Verdict,
    flops: float,
    peak: float,
    best: Best | None,
    forecast: Interval | None,
    *,
    fits: bool,
) -> Decides:
    if verdict == "impossible":
        return Decides(against="dense_peak", claimed=flops, limit=peak, unit="FLOP/s per GPU")
    beaten = best is not None and flops / best.flops_per_s > MARGIN
    # Above everything published, but inside the forecast; or there is no forecast to be inside.
    first = verdict == "optimistic" and forecast is not None and claim.rate <= forecast.p90
    if best is not None and (beaten or first or (forecast is None and fits)):
        return Decides(
            against="best_published",
            claimed=flops,
            limit=best.flops_per_s,
            unit="FLOP/s per GPU",
        )
    if forecast is None:
        return Decides(against="memory", claimed=claim.rate, limit=None, unit="tokens/s per GPU")
    low = verdict == "conservative"
    return Decides(
        against="forecast_p10" if low else "forecast_p90",
        claimed=claim.rate,
        limit=forecast.p10 if low else forecast.p90,
        unit="tokens/s per GPU",
    )


def _in_words(claim: Claim, s: Speed) -> Speed:
    """The speed with its comparisons written as sentences."""
    end = ": no GPU does that" if s.share > 1 else ""
    peak = (
        f"It needs {tflops(s.flops_per_s)} a GPU with causal attention, {fmt.percent(s.share)} of "
        f"the dense {s.precision} peak of {tflops(s.peak)} ({fmt.percent(s.share_by_rule)} by 6 "
        f"FLOPs per parameter and token){end}."
    )
    best = "No training run in matmuls of this width has been published."
    return replace(
        s,
        peak_sentence=peak,
        best_sentence=best if s.best is None else _best_sentence(s, s.best),
        forecast_sentence=_forecast_sentence(claim, s),
    )


def tflops(x: float) -> str:
    """FLOP/s of one GPU: 824 TFLOP/s.

    >>> tflops(823.8e12)
    '824 TFLOP/s'
    """
    return f"{fmt.in_unit(x, 'TFLOP/s')} TFLOP/s"


def times(x: float) -> str:
    """A ratio: 2.34 times, or 1.0016 times where three digits would say 1.

    >>> times(2.344), times(1.0016), times(0.83)
    ('2.34 times', '1.002 times', '0.83 times')
    """
    digits = 3 if abs(x - 1) < 0.005 and abs(x - 1) > 5e-5 else 2
    return f"{x:,.{digits}f} times"


def _best_sentence(s: Speed, best: Best) -> str:
    run = best.run
    ratio = s.flops_per_s / best.flops_per_s
    took = ""
    if s.days_at_best is not None:
        took = f", at which it would take {fmt.days(s.days_at_best * 24)}"
    reached = tflops(run.flops_per_s)
    if not best.in_class:
        share = fmt.percent(run.share_of_peak)
        reached += f", {share} of its peak, which is {tflops(best.flops_per_s)} here"
    return (
        f"{tflops(s.flops_per_s)} is {times(ratio)} the best published of {best.scope}: "
        f"{fmt.count(run.tokens_per_s_per_gpu)} tokens/s a GPU of {run.model} on {run.num_gpus:,} "
        f"{run.accelerator} in {run.precision}: {reached}"
        f"{took} ({run.source}; {run.name})."
    )


def _forecast_sentence(claim: Claim, s: Speed) -> str:
    if s.forecast is None:
        return s.no_forecast
    p10, p50, p90 = (fmt.count(x) for x in (s.forecast.p10, s.forecast.p50, s.forecast.p90))
    where = (
        "above its P90" if claim.rate > s.forecast.p90
        else "below its P10" if claim.rate < s.forecast.p10
        else "inside it"
    )  # fmt: skip
    return (
        f"Our forecast of the fastest layout is {p50} tokens/s a GPU (P10 to P90: {p10} to {p90}); "
        f"the claim's {fmt.count(claim.rate)} is {where}."
    )
