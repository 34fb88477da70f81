"""Where the speed of a plan comes from: tokens per second with their interval, and utilisation."""

from __future__ import annotations

from math import log

from app.forecast.case import Case
from app.provenance.of_facts import (
    TYPED,
    dimensions_of,
    fractions,
    of_accelerator,
    of_scenario,
)
from app.provenance.record import Record, record, undated
from core.evidence.uncertainty import OF_MODEL, Circumstances, doublings, of_step
from core.model.transformer import (
    attention_score_flops_per_token,
    forward_flops_per_token,
    head_flops_per_token,
    matrix_flops_per_token,
)
from core.numeric import Z_90, as_float
from core.time.repeated import repeated_flops_per_token
from hardware.measured import measured_accelerators


def speed_records(case: Case, whole: Record) -> tuple[Record, ...]:
    """Tokens per second, utilisation, the step and its parts."""
    at = case.plan.tokens_per_s
    batch, length = (of_scenario(case.scenario, f) for f in ("global_batch_size", "seq_len"))
    per_s = record(
        "tokens_per_s", "Tokens/s, median (P50)", at.p50, "tokens/s",
        formula="global_batch_size * seq_len / step_s", inputs=(batch, length, whole),
    )  # fmt: skip
    per_gpu = record(
        "tokens_per_s_per_gpu", "Tokens/s per GPU", case.plan.tokens_per_s_per_gpu, "tokens/s",
        formula="tokens_per_s / num_gpus", inputs=(per_s, num_gpus(case)),
    )  # fmt: skip
    return (
        per_s, *ends(per_s, at.p10, at.p90, sigma_record(case), skew_record(case), "Tokens/s"),
        per_gpu,
        *_utilisation(case, per_gpu), whole,
        *(r for r in whole.inputs if r.key.startswith("step_")),
    )  # fmt: skip


def num_gpus(case: Case) -> Record:
    """The number of GPUs of the plan."""
    given = bool(case.scenario.num_gpus)
    return record(
        "num_gpus", "GPUs", case.plan.num_gpus, "GPUs", "given" if given else "computed",
        source=undated(TYPED) if given else None,
        note="" if given else "a number of GPUs that the search tried",
    )  # fmt: skip


def _utilisation(case: Case, per_gpu: Record) -> tuple[Record, Record]:
    peak = of_accelerator(
        case.machine.accelerator, "bf16_flops_per_s", "FLOP/s", key="peak_flops_per_s"
    )
    flops = _flops_per_token(case)
    repeated = record(
        "repeated_flops_per_token", "FLOPs that recompute repeats", _repeated_flops(case),
        "FLOPs per token", topic="Model FLOPs",
        note="the layers' forward pass if all is computed again, the attention scores if some is",
    )  # fmt: skip
    mfu = record(
        "mfu", "MFU", case.plan.mfu, "share", topic="Model FLOPs",
        formula="tokens_per_s_per_gpu * flops_per_token / peak_flops_per_s",
        inputs=(per_gpu, flops, peak),
    )  # fmt: skip
    hfu = record(
        "hfu", "HFU", case.plan.hfu, "share", topic="Model FLOPs",
        formula="tokens_per_s_per_gpu * (flops_per_token + repeated_flops_per_token)"
        " / peak_flops_per_s",
        inputs=(per_gpu, flops, repeated, peak),
    )  # fmt: skip
    return mfu, hfu


def _repeated_flops(case: Case) -> float:
    work = case.work
    return as_float(repeated_flops_per_token(work.model, work.seq_len, case.lay.recompute))


def _flops_per_token(case: Case) -> Record:
    """Model FLOPs per token: the forward pass, and twice as much for the backward pass."""
    work, dims = case.work, dimensions_of(case)
    forward = as_float(forward_flops_per_token(work.model, work.seq_len))
    passes = 2 if as_float(work.adapters) else 3

    def forward_of(key: str, label: str, value: object) -> Record:
        return record(
            key, f"{label}, forward", value, "FLOPs per token", topic="Model FLOPs", inputs=(dims,)
        )

    parts = [
        forward_of("matrix_flops", "Matrices of the layers", matrix_flops_per_token(work.model)),
        forward_of("attention_flops", "Attention scores, causal once",
                   attention_score_flops_per_token(work.model, work.seq_len)),
        forward_of("head_flops", "LM head", head_flops_per_token(work.model)),
    ]  # fmt: skip
    scan = forward - sum(r.value or 0.0 for r in parts)
    if scan > 1e-6 * forward:
        parts.append(forward_of("scan_flops", "Scans of state-space layers", scan))
    return record(
        "flops_per_token", "Model FLOPs per token", passes * forward, "FLOPs", topic="Model FLOPs",
        formula=f"({' + '.join(p.key for p in parts)}) * {passes}", inputs=tuple(parts),
        note="" if passes == 3 else "frozen weights have no weight gradient: two forwards' worth",
    )  # fmt: skip


# --- the interval --------------------------------------------------------------------------------


def sigma_record(case: Case) -> Record:
    """The log width of the tokens/s forecast: independent causes added in quadrature."""
    at, m = case.plan.tokens_per_s, case.machine
    value = log(at.p90 / at.p10) / (2 * Z_90)  # the skew leaves the sum of both sides
    stack = case.scenario.stack
    causes = {
        "unmeasured_sigma": not (m.accelerator.matmul_flops_per_s or "matmul" in m.measured),
        "unseen_accelerator_sigma": m.accelerator.name not in measured_accelerators()
        and not m.measured >= {"matmul", "attention", "memory", "elementwise"},
        "network_sigma": case.plan.num_nodes > 1
        and not (m.network_known or "scale_out" in m.measured),
    }
    terms = [*fractions(stack, *(name for name, holds in causes.items() if holds))]
    if (beyond := as_float(doublings(float(case.plan.num_gpus)))) > 0:
        terms.append(
            record("scale_sigma", "More GPUs than any published run",
                   beyond * as_float(case.eff.scale_sigma), "", topic="Interval",
                   inputs=fractions(stack, "scale_sigma")))  # fmt: skip
    terms += _of_step(case)
    others = sum((t.value or 0.0) ** 2 for t in terms)
    own = record(
        "stack_sigma", "Forecast error of this stack and task", max(value**2 - others, 0.0) ** 0.5,
        "", topic="Interval",
        inputs=fractions(stack, "throughput_sigma", "unknown_stack_sigma", "experts_sigma",
                         "adapters_sigma"),
        note="what your measurement left of it"
        if case.scenario.anchor_tokens_per_s_per_gpu is not None
        else "the causes below that hold, in quadrature",
    )  # fmt: skip
    inputs = (own, *terms)
    return record(
        "throughput_sigma", "Width of the speed forecast (log)", value, "", topic="Interval",
        formula=f"sqrt({' + '.join(f'{t.key}^2' for t in inputs)})", inputs=inputs,
    )  # fmt: skip


def _of_step(case: Case) -> list[Record]:
    """What the parts of the step add to the width, and the speed of a network that is a guess."""
    known = of_step(Circumstances(), parts_s=case.plan.step_s)
    causes = [
        ("host_time_sigma", "How long the step waits for its host", known.waits_for_host),
        ("bandwidth_sigma", "How long it passes over memory", known.passes_over_memory),
    ]
    if (half := case.plan.at_half_network) is not None:
        slower = log(case.plan.tokens_per_s.p50 / half.tokens_per_s)
        causes.append(("half_network_sigma", "The network, which may be half of it", slower))
    left = 1.0 if case.plan.nearby is None else case.plan.nearby.variance_left
    return [
        record(name, label,
               as_float(times) * as_float(getattr(case.eff, name))
               * (left**0.5 if name in OF_MODEL else 1.0), "", topic="Interval",
               inputs=fractions(case.scenario.stack, name))
        for name, label, times in causes
        if as_float(times) > 0
    ]  # fmt: skip


def skew_record(case: Case) -> Record:
    """By which part the width of the speed forecast is more towards slower than it says."""
    return record(
        "throughput_skew", "More of the width towards slower, less towards faster",
        as_float(case.eff.throughput_skew), "", topic="Interval",
        inputs=fractions(case.scenario.stack, "throughput_skew"),
    )  # fmt: skip


def ends(
    base: Record, low: float, high: float, sigma: Record, skew: Record, label: str,
    *, rises_with_speed: bool = True,
) -> tuple[Record, ...]:  # fmt: skip
    """P10 and P90 of what rises, or falls, in proportion to an uncertain speed."""
    below, above = ("+", "-") if rises_with_speed else ("-", "+")
    return tuple(
        record(
            f"{base.key}_{name}", f"{label}, {name.upper()}", value, base.unit, topic="Interval",
            formula=f"{base.key} * exp({sign}{Z_90:.10g} * {sigma.key} * (1 {side} {skew.key}))",
            inputs=(base, sigma, skew),
        )
        for name, value, sign, side in (("p10", low, "-", below), ("p90", high, "", above))
    )  # fmt: skip
