"""A claim's speed in one precision: against the dense peak, the best published run, the forecast.

The verdict follows core/evidence/claimed_speed.py; `decides` is the comparison that it rests on.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.audit.claim import Claim, precisions_on
from app.audit.published import (
    ADAPTER_TASKS,
    PEAKS,
    Best,
    RunKind,
    best_of,
    is_cut,
    is_mixture,
    peak_flops_per_s,
    published_bits,
)
from app.document import format as fmt
from app.forecast.answer import answer
from core.cost.uncertain import Uncertain
from core.evidence import claimed_speed
from core.evidence.claimed_speed import (
    EIGHT_BIT_BASE_BYTES,
    MARGIN,
    QUANTISED_WEIGHT_BYTES,
    VERDICTS,
    WEIGHT_BYTES,
    WIDER_MARGIN,
    Verdict,
)
from core.evidence.published_claims import state_bytes
from core.layout.precision import precision
from core.machine.accelerator import Source
from core.model.transformer import total_params
from core.numeric import as_float
from core.search.plan import Plan
from core.units import DAY_S

USUAL = ("bf16", "fp8", "nvfp4")  # one recipe per width of matmuls
NAMES = {verdict: verdict.replace("_", " ") for verdict in VERDICTS}


@dataclass(frozen=True, slots=True)
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

    claim: Claim
    precision: str
    bits: int
    peak: float
    rule_flops_per_s: float  # by 6 P
    flops_per_s: float  # by 6 P and causal attention: the figure that is judged
    blended_peak: float  # with attention and LM head in 16 bits
    has_published: bool  # a run on this generation with matmuls of this width
    best: Best | None
    plan: Plan | None  # the fastest plan of the forecast
    forecast: Uncertain | None
    no_forecast: str  # why there is none
    fits: bool

    @property
    def peak_source(self) -> Source | None:
        """Where the peak is printed."""
        return self.claim.chip.sources.get(PEAKS[self.bits])

    @property
    def share_by_rule(self) -> float:
        """Share of the dense peak, by 6 P."""
        return self.rule_flops_per_s / self.peak

    @property
    def share(self) -> float:
        """Share of the dense peak, with causal attention."""
        return self.flops_per_s / self.peak

    @property
    def share_of_mixed_peak(self) -> float:
        """Share of the peak with attention and LM head in 16 bits."""
        return self.flops_per_s / self.blended_peak

    @property
    def over_best(self) -> float | None:
        """The claim as a multiple of the best published run."""
        return None if self.best is None else self.flops_per_s / self.best.flops_per_s

    @property
    def margin(self) -> float:
        """How far a claim may be over the best published run before it is not credible."""
        return MARGIN if self.best is not None and self.best.in_class else WIDER_MARGIN

    @property
    def days_at_best(self) -> float | None:
        """Days of the run at the FLOP/s of the best published one."""
        claim = self.claim
        if self.best is None or claim.num_tokens is None:
            return None
        per_gpu = self.best.flops_per_s / claim.flops_per_token
        return claim.num_tokens / (per_gpu * claim.num_gpus) / DAY_S

    @property
    def verdict(self) -> Verdict:
        """The verdict on the claim in this precision."""
        rate, forecast = self.claim.rate, self.forecast
        return claimed_speed.speed_verdict(
            share_of_peak=self.share,
            over_best=self.over_best,
            over_p10=None if forecast is None else rate / forecast.p10,
            over_p90=None if forecast is None else rate / forecast.p90,
            fits=self.fits,
            margin=self.margin,
        )

    @property
    def decides(self) -> Decides:
        """The comparison that the verdict rests on."""
        flops = "FLOP/s per GPU"
        if self.verdict == "impossible":
            return Decides("dense_peak", self.flops_per_s, self.peak, flops)
        rate, forecast = self.claim.rate, self.forecast
        # Above everything published, but inside the forecast; or there is no forecast to be inside.
        first = self.verdict == "optimistic" and forecast is not None and rate <= forecast.p90
        beaten = self.over_best is not None and self.over_best > self.margin
        if self.best is not None and (beaten or first or (forecast is None and self.fits)):
            limit = self.best.flops_per_s
            return Decides("best_published", self.flops_per_s, limit, flops)
        tokens = "tokens/s per GPU"
        if forecast is None:
            return Decides("memory", rate, None, tokens)
        if self.verdict == "conservative":
            return Decides("forecast_p10", rate, forecast.p10, tokens)
        return Decides("forecast_p90", rate, forecast.p90, tokens)

    @property
    def peak_sentence(self) -> str:
        """The claim against the dense peak."""
        end = ": no GPU does that" if self.share > 1 else ""
        return (
            f"It needs {tflops(self.flops_per_s)} a GPU with causal attention, "
            f"{fmt.percent(self.share)} of the dense {self.precision} peak of {tflops(self.peak)} "
            f"({fmt.percent(self.share_by_rule)} by 6 FLOPs per parameter and token){end}."
        )

    @property
    def best_sentence(self) -> str:
        """The claim against the best published run of its class."""
        best = self.best
        if best is None:
            return "No training run in matmuls of this width has been published."
        run, took = best.run, ""
        if self.days_at_best is not None:
            took = f", at which it would take {fmt.days(self.days_at_best * 24)}"
        reached = tflops(run.flops_per_s)
        if not best.in_class:
            share = fmt.percent(run.share_of_peak)
            reached += f", {share} of its peak, which is {tflops(best.flops_per_s)} here"
        return (
            f"{tflops(self.flops_per_s)} is {times(self.flops_per_s / best.flops_per_s)} the best "
            f"published of {best.scope}: {fmt.count(run.tokens_per_s_per_gpu)} tokens/s a GPU of "
            f"{run.model} on {run.num_gpus:,} {run.accelerator} in {run.precision}: {reached}"
            f"{took} ({run.source}; {run.name})."
        )

    @property
    def forecast_sentence(self) -> str:
        """The claim against our forecast, or why there is none."""
        if self.forecast is None:
            return self.no_forecast
        rate, low, high = self.claim.rate, self.forecast.p10, self.forecast.p90
        where = "above its P90" if rate > high else "below its P10" if rate < low else "inside it"
        return (
            f"Our forecast of the fastest layout is {fmt.count(self.forecast.p50)} tokens/s a GPU "
            f"(P10 to P90: {fmt.count(low)} to {fmt.count(high)}); the claim's {fmt.count(rate)} "
            f"is {where}."
        )

    @property
    def reasons(self) -> tuple[str, ...]:
        """The comparisons in sentences, the one that decides first."""
        found = {
            "dense_peak": self.peak_sentence,
            "best_published": self.best_sentence,
            "forecast": self.forecast_sentence,
        }
        against = self.decides.against
        first = found.pop(against if against in found else "forecast")
        return (first, *found.values())


def precisions_of(claim: Claim) -> tuple[str, ...]:
    """One precision per width of matmuls that the accelerator has, and the claimed one."""
    usual = ("fp16" if claim.chip.fp16_only else USUAL[0], *USUAL[1:])
    takes = precisions_on(claim.chip)
    found = [p for p in usual if p in takes]
    if claim.precision is not None and claim.precision not in found:
        found.append(claim.precision)
    return tuple(found)


def kind_of(claim: Claim, bits: int) -> RunKind:
    """The kind of published runs that a claim is compared with."""
    return RunKind(
        bits=bits,
        has_experts=is_mixture(claim.model.transformer),
        active_params=claim.active_params,
        is_cut=is_cut(claim.model.transformer),
        adapters=claim.scenario.task in ADAPTER_TASKS,
    )


def speed_of(claim: Claim, name: str) -> Speed:
    """The claim in one precision."""
    bits = precision(name).matmul_bits
    chip, model = claim.chip, claim.model.transformer
    peak = peak_flops_per_s(chip, bits) or chip.bf16_flops_per_s
    plan, no_forecast = _fastest(claim, name)
    low = as_float(claimed_speed.low_precision_share(model, float(claim.scenario.seq_len)))
    return Speed(
        claim=claim,
        precision=name,
        bits=bits,
        peak=peak,
        rule_flops_per_s=claim.rate * claim.rule_flops_per_token,
        flops_per_s=claim.rate * claim.flops_per_token,
        blended_peak=as_float(
            claimed_speed.blended_peak(
                share=low, low_flops_per_s=peak, flops_per_s=chip.bf16_flops_per_s
            )
        ),
        has_published=bits in published_bits(chip),
        best=best_of(chip, kind_of(claim, bits)),
        plan=plan,
        forecast=None if plan is None else plan.tokens_per_s.times(1 / claim.num_gpus),
        no_forecast=no_forecast,
        fits=plan is not None or states_fit(claim),
    )


def _fastest(claim: Claim, name: str) -> tuple[Plan | None, str]:
    """The fastest plan, or why there is none; if nothing fits, also tried with a chunked loss."""
    why = ""
    for chunked in (False, True):
        scenario = claim.scenario.model_copy(update={"precision": name, "chunked_loss": chunked})
        found = answer(scenario)
        if found.plans:  # the recommended one comes first, the fastest may need a reservation
            return max(found.plans, key=lambda p: p.tokens_per_s.p50), ""
        why = why or found.nothing_fits or "No layout cuts the model over so many GPUs."
    return None, why


def states_fit(claim: Claim) -> bool:
    """Whether the weights alone, in the fewest bits of their task, fit in the GPUs' memory. A
    forecast may find no layout for a run that really took place; this bound holds for every run."""
    least = {"qlora": QUANTISED_WEIGHT_BYTES, "lora": EIGHT_BIT_BASE_BYTES}
    weights = state_bytes(
        num_params=as_float(total_params(claim.model.transformer)),
        bytes_per_param=least.get(claim.scenario.task, WEIGHT_BYTES),
    )
    return as_float(weights) <= claim.num_gpus * claim.chip.memory_bytes


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
