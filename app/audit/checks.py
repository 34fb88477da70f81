"""The checks other than speed: does the claim add up (time, rate, MFU, units, what is counted),
fit in memory and allow for failures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from app.audit.claim import Claim
from app.audit.money import Check as Check
from app.audit.money import consistent_if, dollars, dollars_check, price_check, same_check
from app.audit.published import class_of, is_mixture
from app.audit.speed import Speed, kind_of, tflops
from app.document import format as fmt
from app.risk.risk import Risk
from core.evidence.claimed_speed import SAME, Slip, attention_flops_per_token, slips_of
from core.model.transformer import active_params, total_params
from core.numeric import as_float
from core.units import GIB, HOUR_S

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
        "throughput": _throughput(claim),
        "gpu_hours": _gpu_hours(claim),
        "tokens_per_s": _tokens_per_s(claim),
        "counting": _counting(claim),
        "dense_peak": _dense_peak(s),
        "blended_peak": _blended_peak(s),
        "best_published": _best_published(s),
        "scaling": _scaling(s),
        "forecast": _forecast(s),
        "memory": _memory(s),
        "memory_gb": _memory_gb(s),
        "goodput": _goodput(s, risk),
        "mfu": _mfu(claim, speeds, s),
        "dollars": dollars_check(claim),
        "price": price_check(claim),
        "units": _units(claim, speeds, s),
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
        return Check("pass", text, value=s.share, limit=1.0)
    text += (
        f" Of twice that, which vendors print for 2:4 sparsity, it is "
        f"{fmt.percent(s.share / 2)}: training is dense."
    )
    return Check("fail", text, value=s.share, limit=1.0)


def _blended_peak(s: Speed) -> Check | None:
    """The speed against the blended peak: recipes keep attention and LM head in 16 bits."""
    if s.bits == 16:
        return None
    share = s.flops_per_s / s.blended_peak
    return Check(
        "pass" if share <= 1 else "warn",
        f"With attention and LM head in 16 bits, as {s.precision} recipes and our "
        f"forecast have them, the peak of the mix is {tflops(s.blended_peak)}: "
        f"{fmt.percent(share)}.",
        value=share,
        limit=1.0,
    )


def _best_published(s: Speed) -> Check:
    if s.over_best is None:
        return Check("not given", s.best_sentence)
    status = "fail" if s.over_best > s.margin else "warn" if s.over_best > 1 else "pass"
    return Check(status, s.best_sentence, value=s.over_best, limit=s.margin)


def _scaling(s: Speed) -> Check | None:
    """Speed per GPU against published runs on as many GPUs or more: it does not rise with GPUs."""
    claim = s.claim
    runs = class_of(claim.chip.name, replace(kind_of(claim, s.bits), is_cut=False))
    if not runs:
        return None
    best = next((r for r in runs if r.num_gpus >= claim.num_gpus), None)
    if best is None:
        most = max(r.num_gpus for r in runs)
        return Check(
            "info",
            f"No published run of its class has as many GPUs; the largest has {most:,}. "
            "Tokens per second and GPU do not grow with GPUs.",
        )
    ratio = s.flops_per_s / best.flops_per_s
    return Check(
        "warn" if ratio > 1 else "pass",
        f"Tokens per second and GPU do not grow with GPUs: the best published run of its "
        f"class on {claim.num_gpus:,} GPUs or more does {tflops(best.flops_per_s)} "
        f"a GPU, on {best.num_gpus:,}; the claim is {ratio:.2f} times that.",
        value=ratio,
        limit=1.0,
    )


def _forecast(s: Speed) -> Check:
    if s.forecast is None:
        return Check("warn" if s.fits else "fail", s.forecast_sentence)
    rate, limit = s.claim.rate, s.forecast.p90
    status = "warn" if rate > limit else "pass"
    return Check(status, s.forecast_sentence, value=rate, limit=limit)


def _memory(s: Speed) -> Check:
    if s.plan is None:
        status, word = ("warn", "would") if s.fits else ("fail", "do not")
        text = f"The weights alone {word} fit the GPUs' memory. {s.no_forecast}"
        return Check(status, text)
    need = sum(s.plan.memory_bytes.values())
    chance = s.plan.probability_oom
    return Check(
        "pass" if chance <= UNLIKELY_OOM else "warn",
        f"Fits with {fmt.layout(s.plan.layout)}: {fmt.gib(need)} of "
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
        return Check("fail", s.no_forecast, value=claimed)
    need = sum(s.plan.memory_bytes.values()) / 1e9
    ratio = claimed / need
    slips = slips_of(
        ratio,
        (
            Slip(1e9 / GIB, "it were GiB and not GB, which are 7.4% more"),
            Slip(GIB / 1e9, "GiB had been multiplied into GB twice"),
        ),
        tolerance=0.01,
    )
    close = abs(ratio - 1) <= 0.2
    return Check(
        "pass" if close and not slips else "warn",
        f"{claimed:.4g} GB a GPU is claimed; the fastest layout of our forecast "
        f"needs {need:.4g} GB ({need * 1e9 / GIB:.4g} GiB).{consistent_if(slips)}",
        value=claimed,
        limit=need,
    )


def _goodput(s: Speed, risk: Risk | None) -> Check:
    if risk is None:
        why = s.no_forecast if s.plan is None else "Without tokens there is no length of the run."
        return Check("not given", why)
    if not risk.finishes or risk.hours is None:
        return Check("fail", "With failures as published it does not end.")
    needed = s.claim.rate / risk.goodput
    with_failures = as_float(risk.plan.cost.failures_only_hours)
    above = s.forecast is not None and needed > s.forecast.p90
    days = "" if s.claim.hours is None else f" in {fmt.days(s.claim.hours)}"
    end = "above our P90" if above else "no more than our P90"
    return Check(
        "warn" if above else "pass",
        f"With failures, checkpoints and restarts as published, goodput is "
        f"{fmt.percent(risk.goodput)} (our forecast: {fmt.days(with_failures)} instead of "
        f"{fmt.days(risk.plan.wall_clock_hours)}). To be done{days} all the same, steps must run "
        f"at {fmt.count(needed)} tokens/s a GPU, {end}.",
        value=risk.goodput,
    )


# --- whether the figures add up -----------------------------------------------------------------


def _throughput(claim: Claim) -> Check:
    """The claim's throughput in tokens per second."""
    total = claim.rate * claim.num_gpus
    hours = "" if claim.hours is None else f", {fmt.days(claim.hours)}"
    return Check(
        "info",
        f"From {claim.rate_from}: {fmt.count(claim.rate)} tokens/s a GPU, "
        f"{fmt.count(total)} tokens/s in all{hours}.",
        value=claim.rate,
    )


def _gpu_hours(claim: Claim) -> Check | None:
    """Whether days x GPUs x 24 equals the claimed GPU-hours."""
    if claim.hours is None:
        return None
    product = claim.hours * claim.num_gpus
    days = claim.hours / 24
    text = f"{claim.num_gpus:,} GPUs x {days:.4g} days x 24 = {fmt.count(product)} GPU-hours"
    if claim.gpu_hours is None or claim.days is None:
        return Check("info", f"{text}.", value=product)
    node = float(claim.chip.gpus_per_node)
    return same_check(
        claim.gpu_hours,
        product,
        f"{text}; {fmt.count(claim.gpu_hours)} is claimed",
        ", {} times that",
        (
            Slip(1 / 24, "the days were hours"),
            Slip(node, f"GPUs were counted as nodes of {node:.0f}"),
            Slip(1 / node, f"they were hours of nodes of {node:.0f} GPUs"),
            Slip(24.0, "GPU-days were multiplied by 24 twice"),
        ),
    )


def _tokens_per_s(claim: Claim) -> Check | None:
    """Whether the claimed rate equals tokens over time, if both are given."""
    if claim.tokens_per_s is None or claim.hours is None or claim.num_tokens is None:
        return None
    implied = claim.num_tokens / (claim.hours * HOUR_S)
    node, n = claim.chip.gpus_per_node, claim.num_gpus
    return same_check(
        claim.tokens_per_s,
        implied,
        f"{fmt.tokens_per_s(claim.tokens_per_s)} is claimed, {fmt.tokens_per_s(implied)} implied",
        ": {} times",
        (
            Slip(1.0 / n, "it were of one GPU"),
            Slip(node / n, f"it were of one node of {node} GPUs"),
        ),
    )


def _counting(claim: Claim) -> Check:
    """Which parameters the FLOPs count, and whether attention and recomputation."""
    model, seq_len = claim.model.transformer, float(claim.scenario.seq_len)
    rule = claim.rule_flops_per_token
    share = as_float(attention_flops_per_token(model, seq_len)) / rule
    every, active = as_float(total_params(model)), rule / 6
    experts = (
        f" active ones of {every / 1e9:.4g}B, because a token passes through "
        f"{as_float(model.experts_per_token):.0f} of {as_float(model.num_experts):.0f} experts,"
        if is_mixture(model)
        else ""
    )
    given = " as given," if claim.params is not None else ""
    return Check(
        "info",
        f"6 FLOPs for each of {active / 1e9:.4g}B parameters,{given}{experts} and token; "
        f"causal attention at {claim.scenario.seq_len:,} tokens adds {fmt.percent(share)}. Work "
        "that is recomputed is not counted: this is MFU, not HFU.",
        value=share,
    )


def _mfu(claim: Claim, speeds: Sequence[Speed], s: Speed) -> Check:
    """The claimed MFU against the implied one, for every way to count FLOPs."""
    if claim.mfu is None:
        return Check("not given", "No MFU is claimed: mfu would be checked.")
    low, high = claim.mfu
    base = s if claim.precision is not None else speeds[0]
    if claim.rate_from.startswith("an MFU"):
        text = f"The rate is that of an MFU of {fmt.percent(high)}. {_at_mfu(claim, base)}"
        return Check("info", text, value=high)
    implied = (base.share_by_rule, base.share)
    text = (
        f"{_range(low, high, fmt.percent)} is claimed; the rest of the claim implies "
        f"{fmt.percent(implied[0])} of the {base.precision} peak by 6 P, "
        f"{fmt.percent(implied[1])} with causal attention."
    )
    if any(low * (1 - SAME) <= x <= high * (1 + SAME) for x in implied):
        return Check("pass", text, value=high, limit=implied[1])
    near = low if implied[0] < low else high
    text += consistent_if(slips_of(near / implied[0], _mfu_slips(claim, speeds, base)))
    return Check("fail", text, value=near, limit=implied[1])


def _mfu_slips(claim: Claim, speeds: Sequence[Speed], base: Speed) -> list[Slip]:
    attention = base.flops_per_s / base.rule_flops_per_s - 1
    recomputed = "recomputed FLOPs were counted (HFU: 8 FLOPs per parameter instead of 6)"
    found = [
        Slip(1 + 2 * attention, "attention were counted over the whole square"),
        Slip(8 / 6, recomputed),
        Slip(8 / 6 * (1 + attention), recomputed + ", and attention"),
        Slip(0.5, "it were a share of the peak with 2:4 sparsity, twice the dense one"),
    ]
    for other in speeds:
        if other.peak != base.peak:
            found += [
                Slip(
                    base.peak / other.peak * factor,
                    f"it were a share of the dense {other.precision} peak",
                )
                for factor in (1.0, 1 + attention)
            ]
    model = claim.model.transformer
    ratio = as_float(total_params(model)) / as_float(active_params(model))
    if ratio > 1 + SAME:
        found.append(Slip(ratio, "every expert were counted"))
    return found


def _at_mfu(claim: Claim, base: Speed) -> str:
    """Tokens per second, hours and dollars at both ends of the claimed MFU."""
    low, high = claim.mfu or (0.0, 0.0)
    total = claim.rate * claim.num_gpus
    slow = total if low == high else total * low / high
    text = (
        f"{claim.num_gpus:,} x {tflops(base.peak)} at {_range(low, high, fmt.percent)} are "
        f"{_range(slow, total, fmt.count)} tokens/s"
    )
    if claim.num_tokens is None:
        return f"{text}."
    longest, shortest = (claim.num_tokens / x / HOUR_S for x in (slow, total))
    hours = _range(longest, shortest, fmt.hours)
    text += f" and {hours} for {fmt.tokens(claim.num_tokens)} tokens"
    if claim.usd_per_gpu_hour is not None:
        usd_per_hour = claim.num_gpus * claim.usd_per_gpu_hour
        text += f", {_range(longest * usd_per_hour, shortest * usd_per_hour, dollars)}"
    return f"{text}."


def _range(first: float, last: float, text: Callable[[float], str]) -> str:
    """Two figures as '45% to 50%', or one if they are equal."""
    return text(first) if first == last else f"{text(first)} to {text(last)}"


def _units(claim: Claim, speeds: Sequence[Speed], s: Speed) -> Check:
    """Common mistakes of unit that would bring the claim within the forecast."""
    if s.verdict == "plausible" or s.forecast is None:
        return Check("pass", "No unit needs to be another one.")
    node, n = claim.chip.gpus_per_node, claim.num_gpus
    tries: list[tuple[float, str]]
    if s.verdict == "conservative":
        tries = [(24.0, "the days were hours")]
        if n > node > 1:
            tries.append((float(node), f"one GPU of every {node} had worked"))
    else:
        tries = [(1 / 7, "the days were weeks"), (1 / 30.44, "the days were months")]
        tries += [(1 / node, f"the {n:,} were nodes of {node} GPUs")] if node > 1 else []
        tries.append((1 / 1000, "the tokens were a thousand times fewer"))
    found = [
        f"{text} ({other.precision})"
        for factor, text in tries
        for other in speeds
        if other.forecast is not None
        and other.forecast.p10 <= claim.rate * factor <= other.forecast.p90
        and (claim.days is not None or not text.startswith("the days"))
    ]
    if not found:
        return Check("pass", "No usual slip of unit would explain it.")
    text = f"It would be consistent with our forecast if {', or if '.join(found)}."
    return Check("warn", text)
