"""The checks other than speed: does the claim add up, fit in memory and allow for failures."""

from __future__ import annotations

from collections.abc import Sequence

from app.audit import sums
from app.audit.claim import Claim
from app.audit.money import Check as Check
from app.audit.money import consistent_if, dollars_check, price_check
from app.audit.published import ADAPTER_TASKS, class_of, is_mixture
from app.audit.speed import Speed, tflops
from app.document import format as fmt
from app.risk.risk import Risk
from core.evidence.claimed_speed import Slip, slips_of
from core.numeric import as_float
from core.units import GIB

UNLIKELY_OOM = 0.05
TITLES = {
    "throughput": "Implied throughput",
    "gpu_hours": "GPU-hours",
    "tokens_per_s": "Tokens per second",
    "counting": "What is counted",
    "dense_peak": "Dense peak",
    "blended_peak": "Mixed peak",
    "best_published": "Best published run",
    "scaling": "At this many GPUs",
    "forecast": "Our forecast",
    "memory": "Memory fit",
    "memory_gb": "Claimed memory",
    "goodput": "Goodput",
    "mfu": "Claimed MFU",
    "dollars": "Dollars",
    "price": "Price of a GPU-hour",
    "units": "Units",
}


def checks_of(
    claim: Claim, speeds: Sequence[Speed], s: Speed, risk: Risk | None
) -> dict[str, Check]:
    """Every check by its name; `s` is the speed in the precision that decides the verdict."""
    found = {
        "throughput": sums.throughput_check(claim),
        "gpu_hours": sums.gpu_hours_check(claim),
        "tokens_per_s": sums.tokens_per_s_check(claim),
        "counting": sums.counting_check(claim),
        "dense_peak": _dense_peak(s),
        "blended_peak": _blended_peak(s),
        "best_published": _best_published(s),
        "scaling": _scaling(s),
        "forecast": _forecast(s),
        "memory": _memory(s),
        "memory_gb": _memory_gb(s),
        "goodput": _goodput(s, risk),
        "mfu": sums.mfu_check(claim, speeds, s),
        "dollars": dollars_check(claim),
        "price": price_check(claim),
        "units": sums.units_check(claim, speeds, s),
    }
    return {name: check for name, check in found.items() if check is not None}


def _dense_peak(s: Speed) -> Check:
    source = f" ({s.peak_source.ref}, {s.peak_source.date})" if s.peak_source else ""
    text = (
        f"{fmt.percent(s.share_by_rule)} of the dense {s.precision} peak, "
        f"{tflops(s.peak)}{source}, by 6 P; {fmt.percent(s.share)} with causal "
        "attention, which decides."
    )
    if s.share <= 1:
        return Check(status="pass", sentence=text, value=s.share, limit=1.0)
    text += (
        f" Of twice that, which vendors print for 2:4 sparsity, it is "
        f"{fmt.percent(s.share / 2)}: training is dense."
    )
    return Check(status="fail", sentence=text, value=s.share, limit=1.0)


def _blended_peak(s: Speed) -> Check | None:
    """The speed against the blended peak: recipes keep attention and LM head in 16 bits."""
    if s.bits == 16:
        return None
    share = s.flops_per_s / s.blended_peak
    return Check(
        status="pass" if share <= 1 else "warn",
        sentence=f"With attention and LM head in 16 bits, as {s.precision} recipes and our "
        f"forecast have them, the peak of the mix is {tflops(s.blended_peak)}: "
        f"{fmt.percent(share)}.",
        value=share,
        limit=1.0,
    )


def _best_published(s: Speed) -> Check:
    if s.over_best is None:
        return Check(status="not given", sentence=s.best_sentence)
    status = "fail" if s.over_best > s.margin else "warn" if s.over_best > 1 else "pass"
    return Check(status=status, sentence=s.best_sentence, value=s.over_best, limit=s.margin)


def _scaling(s: Speed) -> Check | None:
    """Speed per GPU against published runs on as many GPUs or more: it does not rise with GPUs."""
    claim = s.claim
    own = class_of(
        claim.chip.name,
        bits=s.bits,
        has_experts=is_mixture(claim.model.transformer),
        active=claim.active_params,
        adapters=claim.scenario.task in ADAPTER_TASKS,
    )
    if not own:
        return None
    best = next((r for r in own if r.num_gpus >= claim.num_gpus), None)
    if best is None:
        most = max(r.num_gpus for r in own)
        return Check(
            status="info",
            sentence=f"No published run of its class has as many GPUs; the largest has {most:,}. "
            "Tokens per second and GPU do not grow with GPUs.",
        )
    ratio = s.flops_per_s / best.flops_per_s
    return Check(
        status="warn" if ratio > 1 else "pass",
        sentence=f"Tokens per second and GPU do not grow with GPUs: the best published run of its "
        f"class on {claim.num_gpus:,} GPUs or more does {tflops(best.flops_per_s)} "
        f"a GPU, on {best.num_gpus:,}; the claim is {ratio:.2f} times that.",
        value=ratio,
        limit=1.0,
    )


def _forecast(s: Speed) -> Check:
    if s.forecast is None:
        return Check(status="warn" if s.fits else "fail", sentence=s.forecast_sentence)
    rate, limit = s.claim.rate, s.forecast.p90
    status = "warn" if rate > limit else "pass"
    return Check(status=status, sentence=s.forecast_sentence, value=rate, limit=limit)


def _memory(s: Speed) -> Check:
    if s.plan is None:
        status, word = ("warn", "would") if s.fits else ("fail", "do not")
        text = f"The weights alone {word} fit the GPUs' memory. {s.no_forecast}"
        return Check(status=status, sentence=text)
    need = sum(s.plan.memory_bytes.values())
    chance = s.plan.probability_oom
    return Check(
        status="pass" if chance <= UNLIKELY_OOM else "warn",
        sentence=f"Fits with {fmt.layout(s.plan.layout)}: {fmt.gib(need)} of "
        f"{fmt.gib(s.plan.memory_capacity_bytes)} a GPU, {fmt.chance(chance)} chance to run out "
        "of memory.",
        value=need,
        limit=s.plan.memory_capacity_bytes,
    )


def _memory_gb(s: Speed) -> Check | None:
    claimed = s.claim.memory_gb
    if claimed is None:
        return None
    if s.plan is None:
        return Check(status="fail", sentence=s.no_forecast, value=claimed)
    need = sum(s.plan.memory_bytes.values()) / 1e9
    ratio = claimed / need
    slips = slips_of(
        ratio,
        (
            Slip(factor=1e9 / GIB, sentence="it were GiB and not GB, which are 7.4% more"),
            Slip(factor=GIB / 1e9, sentence="GiB had been multiplied into GB twice"),
        ),
        tolerance=0.01,
    )
    close = abs(ratio - 1) <= 0.2
    return Check(
        status="pass" if close and not slips else "warn",
        sentence=f"{claimed:.4g} GB a GPU is claimed; the fastest layout of our forecast "
        f"needs {need:.4g} GB ({need * 1e9 / GIB:.4g} GiB).{consistent_if(slips)}",
        value=claimed,
        limit=need,
    )


def _goodput(s: Speed, risk: Risk | None) -> Check:
    if risk is None:
        why = s.no_forecast if s.plan is None else "Without tokens there is no length of the run."
        return Check(status="not given", sentence=why)
    if not risk.finishes or risk.hours is None:
        return Check(status="fail", sentence="With failures as published it does not end.")
    needed = s.claim.rate / risk.goodput
    with_failures = as_float(risk.plan.cost.failures_only_hours)
    above = s.forecast is not None and needed > s.forecast.p90
    days = "" if s.claim.hours is None else f" in {fmt.days(s.claim.hours)}"
    end = "above our P90" if above else "no more than our P90"
    return Check(
        status="warn" if above else "pass",
        sentence=f"With failures, checkpoints and restarts as published, goodput is "
        f"{fmt.percent(risk.goodput)} (our forecast: {fmt.days(with_failures)} instead of "
        f"{fmt.days(risk.plan.wall_clock_hours)}). To be done{days} all the same, steps must run "
        f"at {fmt.count(needed)} tokens/s a GPU, {end}.",
        value=risk.goodput,
    )
