"""Where the speed of a plan comes from: tokens per second, and utilisation."""

from __future__ import annotations

from app.forecast.case import Case
from app.provenance.of_facts import of_accelerator, of_model, of_scenario
from app.provenance.of_interval import ends, sigma_record
from app.provenance.of_step import seq_len
from app.provenance.record import Record, by_topic, record
from core.layout.layouts import RECOMPUTE
from core.layout.workload import Workload
from core.machine.accelerator import Source
from core.model.transformer import (
    attention_score_flops_per_token,
    forward_flops_per_token,
    head_flops_per_token,
    matrix_flops_per_token,
)
from core.numeric import as_float


def speed_records(case: Case, whole: Record) -> tuple[Record, ...]:
    """Tokens per second, utilisation, the step and its parts."""
    plan = case.plan
    per_s = tokens_per_s_record(case, whole)
    per_gpu = record(
        "tokens_per_s_per_gpu", "Tokens/s per GPU", plan.tokens_per_s_per_gpu, "tokens/s",
        "computed", formula="tokens_per_s / num_gpus", inputs=(per_s, num_gpus(case)),
    )  # fmt: skip
    return (
        per_s, *ends(per_s, plan.tokens_per_s.p10, plan.tokens_per_s.p90, sigma_record(case),
                     "Tokens/s"), per_gpu, *_utilisation(case, per_gpu), whole,
        *(r for r in whole.inputs if r.key.startswith("step_")),
    )  # fmt: skip


def num_gpus(case: Case) -> Record:
    """The number of GPUs of the plan."""
    given = bool(case.scenario.num_gpus)
    return record(
        "num_gpus", "GPUs", float(case.plan.num_gpus), "GPUs", "given" if given else "computed",
        source=Source(ref="typed in by the user", date="", printed="") if given else None,
        note="" if given else "a number of GPUs that the search tried",
    )  # fmt: skip


def tokens_per_s_record(case: Case, whole: Record) -> Record:
    """Tokens per second: the tokens of a step over its seconds."""
    batch = of_scenario(case.scenario, "global_batch_size", "Sequences per step", "sequences")
    return record(
        "tokens_per_s", "Tokens/s, median (P50)", case.plan.tokens_per_s.p50, "tokens/s",
        "computed", formula="global_batch_size * seq_len / step_s",
        inputs=(batch, seq_len(case), whole),
    )  # fmt: skip


def _utilisation(case: Case, per_gpu: Record) -> tuple[Record, ...]:
    plan = case.plan
    peak = of_accelerator(
        case.machine.accelerator, "bf16_flops_per_s", "FLOP/s", key="peak_flops_per_s"
    )
    flops = flops_per_token(case)
    repeated = record(
        "repeated_flops_per_token", "FLOPs that recompute repeats", _repeated_flops(case),
        "FLOPs per token", "computed", topic=by_topic("Model FLOPs"),
        note="the layers' forward pass if all is computed again, the attention scores if some is",
    )  # fmt: skip
    topic = by_topic("Model FLOPs")
    mfu = record(
        "mfu", "MFU", plan.mfu, "share", "computed", topic=topic,
        formula="tokens_per_s_per_gpu * flops_per_token / peak_flops_per_s",
        inputs=(per_gpu, flops, peak),
    )  # fmt: skip
    hfu = record(
        "hfu", "HFU", plan.hfu, "share", "computed", topic=topic,
        formula="tokens_per_s_per_gpu * (flops_per_token + repeated_flops_per_token)"
        " / peak_flops_per_s",
        inputs=(per_gpu, flops, repeated, peak),
    )  # fmt: skip
    return mfu, hfu


def _passes(work: Workload) -> float:
    return 2.0 if as_float(work.adapters) else 3.0


def _repeated_flops(case: Case) -> float:
    work, kind = case.work, RECOMPUTE.index(case.plan.layout.recompute)
    if kind >= RECOMPUTE.index("full"):
        forward = as_float(forward_flops_per_token(work.model, work.seq_len))
        return forward - as_float(head_flops_per_token(work.model))
    if kind == RECOMPUTE.index("selective"):
        return as_float(attention_score_flops_per_token(work.model, work.seq_len))
    return 0.0


def flops_per_token(case: Case) -> Record:
    """Model FLOPs per token: the forward pass, and twice as much for the backward pass."""
    work = case.work
    dims = of_model(
        case.scenario, "model_dimensions", f"Dimensions of {case.model.label}", None, ""
    )
    topic = by_topic("Model FLOPs")

    def forward_of(key: str, label: str, value: object) -> Record:
        return record(
            key, label, as_float(value), "FLOPs per token", "computed", topic=topic, inputs=(dims,)
        )

    matrices = forward_of("matrix_flops", "Matrices of the layers, forward",
                        matrix_flops_per_token(work.model))  # fmt: skip
    scores = forward_of("attention_flops", "Attention scores, causal once, forward",
                      attention_score_flops_per_token(work.model, work.seq_len))  # fmt: skip
    head = forward_of("head_flops", "LM head, forward", head_flops_per_token(work.model))
    forward = as_float(forward_flops_per_token(work.model, work.seq_len))
    known = sum(r.value or 0.0 for r in (matrices, scores, head))
    scan = forward_of("scan_flops", "Scans of state-space layers, forward", forward - known)
    has_scan = forward - known > 1e-6 * forward
    passes = _passes(work)
    return record(
        "flops_per_token", "Model FLOPs per token", passes * forward, "FLOPs", "computed",
        formula="(matrix_flops + attention_flops + head_flops"
        + (" + scan_flops" if has_scan else "") + f") * {passes:g}",
        inputs=(matrices, scores, head, *((scan,) if has_scan else ())), topic=topic,
        note="" if passes == 3 else "frozen weights have no weight gradient: two forwards' worth",
    )  # fmt: skip
