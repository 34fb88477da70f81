"""Whether the figures of a claim add up: time, rate, MFU, units, and what is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from app.audit.claim import Claim
from app.audit.money import Check, consistent_if, dollars, same_check
from app.audit.published import is_mixture
from app.audit.speed import Speed, tflops
from app.document import format as fmt
from core.evidence.claimed_speed import SAME, Slip, attention_flops_per_token, slips_of
from core.model.transformer import active_params, total_params
from core.numeric import as_float
from core.units import HOUR_S


def throughput_check(claim: Claim) -> Check:
    """The claim's throughput in tokens per second."""
    total = claim.rate * claim.num_gpus
    hours = "" if claim.hours is None else f", {fmt.days(claim.hours)}"
    return Check(
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
        return Check(status="info", sentence=f"{text}.", value=product)
    node = float(claim.chip.gpus_per_node)
    return same_check(
        claim.gpu_hours,
        product,
        f"{text}; {fmt.count(claim.gpu_hours)} is claimed",
        ", {} times that",
        (
            Slip(factor=1 / 24, sentence="the days were hours"),
            Slip(factor=node, sentence=f"GPUs were counted as nodes of {node:.0f}"),
            Slip(factor=1 / node, sentence=f"they were hours of nodes of {node:.0f} GPUs"),
            Slip(factor=24.0, sentence="GPU-days were multiplied by 24 twice"),
        ),
    )


def tokens_per_s_check(claim: Claim) -> Check | None:
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
            Slip(factor=1.0 / n, sentence="it were of one GPU"),
            Slip(factor=node / n, sentence=f"it were of one node of {node} GPUs"),
        ),
    )


def counting_check(claim: Claim) -> Check:
    """What the FLOPs count: which parameters, attention, recomputation."""
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
        status="info",
        sentence=f"6 FLOPs for each of {active / 1e9:.4g}B parameters,{given}{experts} and token; "
        f"causal attention at {claim.scenario.seq_len:,} tokens adds {fmt.percent(share)}. Work "
        "that is recomputed is not counted: this is MFU, not HFU.",
        value=share,
    )


def mfu_check(claim: Claim, speeds: Sequence[Speed], s: Speed) -> Check:
    """The claimed MFU against the implied one, for every way to count FLOPs."""
    if claim.mfu is None:
        return Check(status="not given", sentence="No MFU is claimed: mfu would be checked.")
    low, high = claim.mfu
    base = s if claim.precision is not None else speeds[0]
    if claim.rate_from.startswith("an MFU"):
        text = f"The rate is that of an MFU of {fmt.percent(high)}. {_at_mfu(claim, base)}"
        return Check(status="info", sentence=text, value=high)
    implied = (base.share_by_rule, base.share)
    text = (
        f"{_range(low, high, fmt.percent)} is claimed; the rest of the claim implies "
        f"{fmt.percent(implied[0])} of the {base.precision} peak by 6 P, "
        f"{fmt.percent(implied[1])} with causal attention."
    )
    if any(low * (1 - SAME) <= x <= high * (1 + SAME) for x in implied):
        return Check(status="pass", sentence=text, value=high, limit=implied[1])
    near = low if implied[0] < low else high
    text += consistent_if(slips_of(near / implied[0], _mfu_slips(claim, speeds, base)))
    return Check(status="fail", sentence=text, value=near, limit=implied[1])


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


def units_check(claim: Claim, speeds: Sequence[Speed], s: Speed) -> Check:
    """Common mistakes of unit that would bring the claim within the forecast."""
    if s.verdict == "plausible" or s.forecast is None:
        return Check(status="pass", sentence="No unit needs to be another one.")
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
        return Check(status="pass", sentence="No usual slip of unit would explain it.")
    text = f"It would be consistent with our forecast if {', or if '.join(found)}."
    return Check(status="warn", sentence=text)
