"""The checks other than speed: does the claim add up, fit in memory and allow for failures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.audit import sums
from app.audit.claim import Claim
from app.audit.money import Check as Check
from app.audit.money import consistent_if, dollars_check, price_check
from app.audit.published import class_of
from app.audit.speed import Speed, tflops
from app.document import format as fmt
from app.risk.risk import Risk
from core.evidence.claimed_speed import MARGIN, Slip, slips_of
from core.model.transformer import active_params, is_moe
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
) -> tuple[Check, ...]:
    """Every check; `s` is the speed in the precision that decides the verdict."""
    found = (
        sums.throughput_check(claim),
        sums.gpu_hours_check(claim),
        sums.tokens_per_s_check(claim),
        sums.counting_check(claim),
        _dense_peak(s),
        _blended_peak(s),
        _best_published(s),
        _scaling(claim, s),
        _forecast(claim, s),
        _memory(s),
        _memory_gb(claim, s),
        _goodput(claim, s, risk),
        sums.mfu_check(claim, speeds, s),
        dollars_check(claim),
        price_check(claim),
        sums.units_check(claim, speeds, s),
    )
    return tuple(c for c in found if c is not None)


def _dense_peak(s: Speed) -> Check:
    source = f" ({s.peak_source.ref}, {s.peak_source.date})" if s.peak_source else ""
    text = (
        f"{fmt.percent(s.share_by_rule)} of the dense {s.precision} peak, "
        f"{tflops(s.peak)}{source}, by 6 P; {fmt.percent(s.share)} with causal "
        "attention, which decides."
    )
    if s.share > 1:
        text += (
            f" Of twice that, which vendors print for 2:4 sparsity, it is "
            f"{fmt.percent(s.share / 2)}: training is dense."
        )
    return Check(
        name="dense_peak",
        status="fail" if s.share > 1 else "pass",
        sentence=text,
        value=s.share,
        limit=1.0,
    )


def _blended_peak(s: Speed) -> Check | None:
    """The speed against the blended peak: recipes keep attention and LM head in 16 bits."""
    if s.bits == 16:
        return None
    share = s.flops_per_s / s.blended_peak
    return Check(
        name="blended_peak",
        status="pass" if share <= 1 else "warn",
        sentence=f"With attention and LM head in 16 bits, as {s.precision} recipes and our "
        f"forecast have them, the peak of the mix is {tflops(s.blended_peak)}: "
        f"{fmt.percent(share)}.",
        value=share,
        limit=1.0,
    )


def _best_published(s: Speed) -> Check:
    sentence = s.best_sentence
    if s.best is None or s.over_best is None:
        return Check(name="best_published", status="not given", sentence=sentence)
    status = "fail" if s.over_best > MARGIN else "warn" if s.over_best > 1 else "pass"
    return Check(
        name="best_published", status=status, sentence=sentence, value=s.over_best, limit=MARGIN
    )


def _scaling(claim: Claim, s: Speed) -> Check | None:
    """Speed per GPU against published runs on as many GPUs or more: it does not rise with GPUs."""
    model = claim.model.transformer
    active = claim.params or as_float(active_params(model))
    own = class_of(
        claim.chip.name, bits=s.bits, has_experts=bool(np.asarray(is_moe(model))), active=active
    )
    large = [r for r in own if r.num_gpus >= claim.num_gpus]
    if not own:
        return None
    if not large:
        most = max(r.num_gpus for r in own)
        return Check(
            name="scaling",
            status="info",
            sentence=f"No published run of its class has as many GPUs; the largest has {most:,}. "
            "Tokens per second and GPU do not grow with GPUs.",
        )
    best = large[0]
    ratio = s.flops_per_s / best.flops_per_s
    return Check(
        name="scaling",
        status="warn" if ratio > 1 else "pass",
        sentence=f"Tokens per second and GPU do not grow with GPUs: the best published run of its "
        f"class on {claim.num_gpus:,} GPUs or more does {tflops(best.flops_per_s)} "
        f"a GPU, on {best.num_gpus:,}; the claim is {ratio:.2f} times that.",
        value=ratio,
        limit=1.0,
    )


def _forecast(claim: Claim, s: Speed) -> Check:
    sentence = s.forecast_sentence
    if s.forecast is None:
        return Check(name="forecast", status="warn" if s.fits else "fail", sentence=sentence)
    above = claim.rate > s.forecast.p90
    return Check(
        name="forecast",
        status="warn" if above else "pass",
        sentence=sentence,
        value=claim.rate,
        limit=s.forecast.p90,
    )


def _memory(s: Speed) -> Check:
    if s.plan is None:
        states = (
            "Weights, gradients and optimizer states, 16 bytes a parameter, would fit"
            if s.fits
            else "Weights, gradients and optimizer states alone, 16 bytes a parameter, do not fit"
        )
        return Check(
            name="memory",
            status="warn" if s.fits else "fail",
            sentence=f"{states} the GPUs' memory. {s.no_forecast}",
        )
    need = sum(s.plan.memory_bytes.values())
    chance = s.plan.probability_oom
    return Check(
        name="memory",
        status="pass" if chance <= UNLIKELY_OOM else "warn",
        sentence=f"Fits with {fmt.layout(s.plan.layout)}: {fmt.gib(need)} of "
        f"{fmt.gib(s.plan.memory_capacity_bytes)} a GPU, {fmt.percent(chance)} chance to run out "
        "of memory.",
        value=need,
        limit=s.plan.memory_capacity_bytes,
    )


def _memory_gb(claim: Claim, s: Speed) -> Check | None:
    if claim.memory_gb is None:
        return None
    if s.plan is None:
        return Check(name="memory_gb", status="fail", sentence=s.no_forecast, value=claim.memory_gb)
    need = sum(s.plan.memory_bytes.values()) / 1e9
    ratio = claim.memory_gb / need
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
        name="memory_gb",
        status="pass" if close and not slips else "warn",
        sentence=f"{claim.memory_gb:.4g} GB a GPU is claimed; the fastest layout of our forecast "
        f"needs {need:.4g} GB ({need * 1e9 / GIB:.4g} GiB).{consistent_if(slips)}",
        value=claim.memory_gb,
        limit=need,
    )


def _goodput(claim: Claim, s: Speed, risk: Risk | None) -> Check:
    if risk is None:
        why = s.no_forecast if s.plan is None else "Without tokens there is no length of the run."
        return Check(name="goodput", status="not given", sentence=why)
    if not risk.finishes or risk.hours is None:
        return Check(
            name="goodput", status="fail", sentence="With failures as published it does not end."
        )
    needed = claim.rate / risk.goodput
    above = s.forecast is not None and needed > s.forecast.p90
    days = "" if claim.hours is None else f" in {fmt.days(claim.hours)}"
    end = "above our P90" if above else "no more than our P90"
    return Check(
        name="goodput",
        status="warn" if above else "pass",
        sentence=f"With failures, checkpoints and restarts as published, goodput is "
        f"{fmt.percent(risk.goodput)} (our forecast: {fmt.days(risk.hours.expected)} instead of "
        f"{fmt.days(risk.plan.wall_clock_hours)}). To be done{days} all the same, steps must run "
        f"at {fmt.count(needed)} tokens/s a GPU, {end}.",
        value=risk.goodput,
    )
