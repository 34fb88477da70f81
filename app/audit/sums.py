"""Whether the figures of a claim add up: time, rate, MFU, units, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.audit.claim import Claim
from app.audit.money import Check, consistent_if, dollars
from app.audit.speed import Speed, rule_flops_per_token, tflops
from app.document import format as fmt
from core.evidence.claimed_speed import SAME, Slip, attention_flops_per_token, slips_of
from core.model.transformer import active_params, is_moe, total_params
from core.numeric import as_float
from core.units import HOUR_S


def throughput_check(claim: Claim) -> Check:
    """The claim's throughput in tokens per second."""
    total = claim.rate * claim.num_gpus
    hours = "" if claim.hours is None else f", {fmt.days(claim.hours)}"
    return Check(
        name="throughput",
        status="info",
        sentence=f"From {claim.rate_from}: {fmt.count(claim.rate)} tokens/s a GPU, "
        f"{fmt.count(total)} tokens/s in all{hours}.",
        value=claim.rate,
    )


def gpu_hours_check(claim: Claim) -> Check | None:
    """Whether days x GPUs x 24 equals the claimed GPU-hours."""
    if claim.hours is None:
        return None
    product = claim.hours * claim.num_gpus
    days = claim.hours / 24
    text = f"{claim.num_gpus:,} GPUs x {days:.4g} days x 24 = {fmt.count(product)} GPU-hours"
    if claim.gpu_hours is None or claim.days is None:
        return Check(name="gpu_hours", status="info", sentence=f"{text}.", value=product)
    if abs(claim.gpu_hours / product - 1) <= SAME:
        return Check(
            name="gpu_hours",
            status="pass",
            sentence=f"{text}; {fmt.count(claim.gpu_hours)} is claimed.",
            value=claim.gpu_hours,
            limit=product,
        )
    node = float(claim.chip.gpus_per_node)
    slips = slips_of(
        claim.gpu_hours / product,
        (
            Slip(factor=1 / 24, sentence="the days were hours"),
            Slip(factor=node, sentence=f"GPUs were counted as nodes of {node:.0f}"),
            Slip(factor=1 / node, sentence=f"they were hours of nodes of {node:.0f} GPUs"),
            Slip(factor=24.0, sentence="GPU-days were multiplied by 24 twice"),
        ),
    )
    return Check(
        name="gpu_hours",
        status="fail",
        sentence=f"{text}; {fmt.count(claim.gpu_hours)} is claimed, "
        f"{claim.gpu_hours / product:.3g} times that.{consistent_if(slips)}",
        value=claim.gpu_hours,
        limit=product,
    )


def tokens_per_s_check(claim: Claim) -> Check | None:
    """Whether the claimed rate equals tokens over time, if both are given."""
    if claim.tokens_per_s is None or claim.hours is None or claim.num_tokens is None:
        return None
    implied = claim.num_tokens / (claim.hours * HOUR_S)
    ratio = claim.tokens_per_s / implied
    text = f"{fmt.tokens_per_s(claim.tokens_per_s)} is claimed, {fmt.tokens_per_s(implied)} implied"
    if abs(ratio - 1) <= SAME:
        return Check(
            name="tokens_per_s",
            status="pass",
            sentence=f"{text}.",
            value=claim.tokens_per_s,
            limit=implied,
        )
    slips = slips_of(
        ratio,
        (
            Slip(factor=1.0 / claim.num_gpus, sentence="it were of one GPU"),
            Slip(
                factor=claim.chip.gpus_per_node / claim.num_gpus,
                sentence=f"it were of one node of {claim.chip.gpus_per_node} GPUs",
            ),
        ),
    )
    return Check(
        name="tokens_per_s",
        status="fail",
        sentence=f"{text}: {ratio:.3g} times.{consistent_if(slips)}",
        value=claim.tokens_per_s,
        limit=implied,
    )


def counting_check(claim: Claim) -> Check:
    """What the FLOPs count: which parameters, attention, recomputation."""
    model, seq_len = claim.model.transformer, float(claim.scenario.seq_len)
    rule = rule_flops_per_token(claim)
    share = as_float(attention_flops_per_token(model, seq_len)) / rule
    every, active = as_float(total_params(model)), rule / 6
    experts = (
        f" active ones of {every / 1e9:.4g}B, because a token passes through "
        f"{as_float(model.experts_per_token):.0f} of {as_float(model.num_experts):.0f} experts,"
        if bool(np.asarray(is_moe(model)))
        else ""
    )
    given = " as given," if claim.params is not None else ""
    return Check(
        name="counting",
        status="info",
        sentence=f"6 FLOPs for each of {active / 1e9:.4g}B parameters,{given}{experts} and token; "
        f"causal attention at {claim.scenario.seq_len:,} tokens adds {fmt.percent(share)}. Work "
        "that is recomputed is not counted: this is MFU, not HFU.",
        value=share,
    )


def mfu_check(claim: Claim, speeds: Sequence[Speed], s: Speed) -> Check:
    """The claimed MFU against the implied one, for every way to count FLOPs."""
    if claim.mfu is None:
        return Check(
            name="mfu", status="not given", sentence="No MFU is claimed: mfu would be checked."
        )
    low, high = claim.mfu
    base = s if claim.precision is not None else speeds[0]
    shown = fmt.percent(low) if low == high else f"{fmt.percent(low)} to {fmt.percent(high)}"
    if claim.rate_from.startswith("an MFU"):
        return Check(
            name="mfu",
            status="info",
            sentence=f"The rate is that of an MFU of {fmt.percent(high)}. {_at_mfu(claim, base)}",
            value=high,
        )
    implied = (base.share_by_rule, base.share)
    text = (
        f"{shown} is claimed; the rest of the claim implies {fmt.percent(implied[0])} of the "
        f"{base.precision} peak by 6 P, {fmt.percent(implied[1])} with causal attention."
    )
    if any(low * (1 - SAME) <= x <= high * (1 + SAME) for x in implied):
        return Check(name="mfu", status="pass", sentence=text, value=high, limit=implied[1])
    near = low if implied[0] < low else high
    slips = slips_of(near / implied[0], _mfu_slips(claim, speeds, base))
    return Check(
        name="mfu",
        status="fail",
        sentence=f"{text}{consistent_if(slips)}",
        value=near,
        limit=implied[1],
    )


def _mfu_slips(claim: Claim, speeds: Sequence[Speed], base: Speed) -> list[Slip]:
    attention = base.flops_per_s / base.rule_flops_per_s - 1
    recomputed = "recomputed FLOPs were counted (HFU: 8 FLOPs per parameter instead of 6)"
    found = [
        Slip(factor=1 + 2 * attention, sentence="attention were counted over the whole square"),
        Slip(factor=8 / 6, sentence=recomputed),
        Slip(factor=8 / 6 * (1 + attention), sentence=recomputed + ", and attention"),
        Slip(
            factor=0.5,
            sentence="it were a share of the peak with 2:4 sparsity, twice the dense one",
        ),
    ]
    for other in speeds:
        if other.peak != base.peak:
            found += [
                Slip(
                    factor=base.peak / other.peak * factor,
                    sentence=f"it were a share of the dense {other.precision} peak",
                )
                for factor in (1.0, 1 + attention)
            ]
    model = claim.model.transformer
    ratio = as_float(total_params(model)) / as_float(active_params(model))
    if ratio > 1 + SAME:
        found.append(Slip(factor=ratio, sentence="every expert were counted"))
    return found


def _at_mfu(claim: Claim, base: Speed) -> str:
    """Tokens per second, hours and dollars at both ends of the claimed MFU."""
    low, high = claim.mfu or (0.0, 0.0)
    total = claim.rate * claim.num_gpus
    slow = total * low / high
    rates = fmt.count(total) if low == high else f"{fmt.count(slow)} to {fmt.count(total)}"
    text = (
        f"{claim.num_gpus:,} x {tflops(base.peak)} at {fmt.percent(low)}"
        + ("" if low == high else f" to {fmt.percent(high)}")
        + f" are {rates} tokens/s"
    )
    if claim.num_tokens is None:
        return f"{text}."
    hours = [claim.num_tokens / x / HOUR_S for x in (slow, total)]
    spans = (
        fmt.hours(hours[0]) if low == high else f"{fmt.hours(hours[0])} to {fmt.hours(hours[1])}"
    )
    text += f" and {spans} for {fmt.tokens(claim.num_tokens)} tokens"
    if claim.usd_per_gpu_hour is not None:
        usd = [dollars(h * claim.num_gpus * claim.usd_per_gpu_hour) for h in hours]
        text += f", {usd[0]}" if low == high else f", {usd[0]} to {usd[1]}"
    return f"{text}."


def units_check(claim: Claim, speeds: Sequence[Speed], s: Speed) -> Check:
    """Common mistakes of unit that would bring the claim within the forecast."""
    if s.verdict == "plausible" or s.forecast is None:
        return Check(name="units", status="pass", sentence="No unit needs to be another one.")
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
        return Check(
            name="units", status="pass", sentence="No usual slip of unit would explain it."
        )
    return Check(
        name="units",
        status="warn",
        sentence=f"It would be consistent with our forecast if {', or if '.join(found)}.",
    )
