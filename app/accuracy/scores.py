"""Compare forecasts of published runs with their measurements and with a baseline, by part.

Implausible measurements (placeholders, typing errors) are counted but not scored. Throughput is
compared in tokens/s, never in reported TFLOP/s, because sources count FLOPs in different ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.accuracy.predict import Predictions
from app.accuracy.section_scores import (
    Flags,
    Numbers,
    PairSection,
    Rows,
    Section,
    Texts,
    counted,
    joined,
    section_of,
)
from app.document import format as fmt
from core.evidence.accuracy import OomAccuracy, scored_oom, scored_pairs, scored_pairs_by
from core.evidence.baseline import out_of_group_mfu
from core.machine.accelerator import Accelerator
from core.model.transformer import as_columns, train_flops_per_token
from core.units import GIB
from hardware.efficiency import stack_of
from hardware.measured import Pairs, RunInputs, Runs
from hardware.measured_model import ModelFacts

# Measurements outside these bounds are placeholders or typing errors and are not scored.
MIN_MFU = 0.005
MIN_PEAK_GIB = 1.0
CAPACITY_SLACK = 1.1  # GB reported as GiB, allocators that count failed requests
PEAK_RATIO = {"bf16": 1.0, "fp16": 1.0, "tf32": 1.0, "nvfp4": 4.0}  # every other format: 8 bits
EIGHT_BIT = 2.0
FROZEN_WEIGHTS = 1.5  # LoRA skips a third of the FLOPs that MFU counts
CONFIGURATION = (
    "model_key", "task", "num_gpus", "tp", "pp", "vpp", "cp", "ep", "etp", "dp_sharding",
    "fsdp_degree", "recompute", "offload", "compile", "micro_batch", "global_batch", "seq_len",
    "precision", "framework",
)  # fmt: skip


def labels_of(
    runs: Runs, known: Mapping[str, ModelFacts], machines: Mapping[str, Accelerator]
) -> dict[str, Texts]:
    """The labels of every row, by kind, for the tables by part."""
    inputs = runs.inputs
    accelerator = [machines[a].name if a in machines else a for a in inputs.accelerator]
    models = [known.get(str(key)) for key in inputs.model_key]
    architecture = ["unknown" if m is None else "moe" if m.is_moe else "dense" for m in models]
    profiles = ["known" if stack_of(str(name)) else "unknown" for name in inputs.framework]
    texts = {
        "accelerator": np.array(accelerator, dtype=np.str_),
        "precision": inputs.precision,
        "architecture": np.array(architecture, dtype=np.str_),
        "framework": inputs.framework,
        "task": inputs.task,
        "stack_profile": np.array(profiles, dtype=np.str_),
    }
    return {name: np.where(column == "", "not given", column) for name, column in texts.items()}


def configurations(inputs: RunInputs, accelerator: Texts) -> Texts:
    """One text per row, equal for repeats of a run.

    It covers model, task, machine, layout, batch, sequence, precision and stack, but not the
    stack's release or the publication.
    """
    columns = (np.asarray(getattr(inputs, name), dtype=np.str_) for name in CONFIGURATION)
    return joined(accelerator, *columns)


def _reasons(rows: Flags, reason: Callable[[int], str]) -> NDArray[np.object_]:
    """The reason for the rows given, '' for the others."""
    found = np.full(len(rows), "", dtype=object)
    for i in np.flatnonzero(rows):
        found[i] = reason(int(i))
    return found


def _per_machine(runs: Runs, machines: Mapping[str, Accelerator], quantity: str) -> Numbers:
    """One quantity of each row's accelerator; NaN where the accelerator is unknown."""
    by_name = {a: float(getattr(machine, quantity)) for a, machine in machines.items()}
    return np.array([by_name.get(str(a), np.nan) for a in runs.inputs.accelerator], dtype=float)


def throughput_scores(
    runs: Runs,
    predictions: Predictions,
    known: Mapping[str, ModelFacts],
    machines: Mapping[str, Accelerator],
    labels: Mapping[str, Texts],
) -> tuple[Section, Section]:
    """Scores of the throughput forecast and, on the same rows, of the baseline."""
    inputs, measured = runs.inputs, runs.measured
    flops = np.full(len(runs), np.nan)
    rows = np.flatnonzero([str(key) in known for key in inputs.model_key])
    if rows.size:
        models = as_columns([known[str(inputs.model_key[i])].transformer for i in rows])
        flops[rows] = train_flops_per_token(models, inputs.seq_len[rows])
    per_token_s = flops / _per_machine(runs, machines, "bf16_flops_per_s")
    mfu = measured.tokens_per_s_per_gpu * per_token_s
    lower = [PEAK_RATIO.get(str(p), EIGHT_BIT) if p else 4.0 for p in inputs.precision]
    adapters = np.isin(inputs.task, ("lora", "qlora"))
    highest = np.array(lower) * np.where(adapters, FROZEN_WEIGHTS, 1.0)
    implausible = (mfu < MIN_MFU) | (mfu > highest) | measured.unreadable_throughput
    given = np.isfinite(measured.tokens_per_s_per_gpu) & ~implausible
    use = measured.throughput_ok & given
    truth = np.where(use, measured.tokens_per_s_per_gpu, np.nan)
    group = joined(inputs.source, inputs.model_key, labels["accelerator"])
    forecast = Rows(
        predicted=predictions.tokens_per_s_per_gpu_p50,
        measured=truth,
        refused=measured.throughput_ok & ~predictions.ok,
        low=predictions.tokens_per_s_per_gpu_p10,
        high=predictions.tokens_per_s_per_gpu_p90,
        family=group,
        configuration=configurations(inputs, labels["accelerator"]),
    )
    section = section_of(
        labels,
        forecast,
        implausible=_reasons(
            measured.throughput_ok & implausible & ~measured.unreadable_throughput,
            lambda i: (
                f"tokens_per_s_per_gpu={measured.tokens_per_s_per_gpu[i]:g} is "
                f"{fmt.percent(mfu[i])} of the 16-bit peak; {fmt.percent(MIN_MFU)} to "
                f"{fmt.percent(highest[i])} can be."
            ),
        ),
        left_out={
            "throughput_ok is not 1": ~measured.throughput_ok,
            "implausible throughput": measured.throughput_ok & implausible,
            "no throughput measured": measured.throughput_ok & ~implausible & ~given,
        },
    )
    others = out_of_group_mfu(
        mfu=np.where(use, mfu, np.nan),
        group=group,
        accelerator=labels["accelerator"],
        precision=labels["precision"],
        architecture=labels["architecture"],
        framework=labels["framework"],
    )
    without = predictions.ok & use & ~np.isfinite(others.mfu)
    same_rows = replace(
        forecast,
        predicted=others.mfu / per_token_s,
        measured=np.where(predictions.ok, truth, np.nan),
        refused=without,
        low=None,
        high=None,
    )
    baseline = section_of(
        labels,
        same_rows,
        implausible=_reasons(np.full(len(runs), False), str),
        left_out={"no other group to learn from": without},
    )
    return section, baseline


def memory_scores(
    runs: Runs,
    predictions: Predictions,
    machines: Mapping[str, Accelerator],
    labels: Mapping[str, Texts],
) -> Section:
    """Scores of the predicted peak memory."""
    measured = runs.measured
    capacity = _per_machine(runs, machines, "memory_bytes") / GIB
    peak = measured.peak_memory_gib
    impossible = (peak <= MIN_PEAK_GIB) | (peak > CAPACITY_SLACK * capacity)
    implausible = impossible | measured.unreadable_memory
    given = np.isfinite(peak) & ~implausible
    rows = Rows(
        predicted=predictions.peak_memory_gib,
        measured=np.where(measured.memory_ok & given, peak, np.nan),
        refused=measured.memory_ok & ~predictions.ok,
        low=predictions.peak_memory_gib_p10,
        high=predictions.peak_memory_gib_p90,
        family=joined(runs.inputs.source, runs.inputs.model_key, labels["accelerator"]),
        configuration=configurations(runs.inputs, labels["accelerator"]),
    )
    return section_of(
        labels,
        rows,
        implausible=_reasons(
            measured.memory_ok & impossible,
            lambda i: f"peak_mem_gib={peak[i]:g} is no peak of a device of {capacity[i]:.3g} GiB.",
        ),
        left_out={
            "memory_ok is not 1": ~measured.memory_ok,
            "implausible peak memory": measured.memory_ok & implausible,
            "no peak memory measured": measured.memory_ok & ~implausible & ~given,
        },
    )


def oom_scores(runs: Runs, predictions: Predictions) -> OomAccuracy:
    """Scores of the probability of running out of memory.

    A row with a measured throughput or peak counts as having fit unless it states otherwise.
    """
    measured = runs.measured
    ran = np.isfinite(measured.tokens_per_s_per_gpu) | np.isfinite(measured.peak_memory_gib)
    return scored_oom(
        probability_oom=predictions.probability_oom,
        oom=np.where(np.isnan(measured.oom) & ran, 0.0, measured.oom),
        refused=~predictions.ok,
    )


def pairs_scores(
    pairs: Pairs | None, runs: Runs, predictions: Predictions, labels: Mapping[str, Texts]
) -> PairSection:
    """Scores of predicted ratios. Pairs need both of their runs in the file."""
    if pairs is None:
        none = np.empty(0)
        empty = scored_pairs(predicted_ratio=none, measured_ratio=none, refused=none.astype(bool))
        return PairSection(overall=empty, memory=empty, by={}, left_out={})
    row = {str(run_id): i for i, run_id in reversed(list(enumerate(runs.inputs.run_id)))}
    a = np.array([row.get(str(r), -1) for r in pairs.run_a], dtype=np.int64)
    b = np.array([row.get(str(r), -1) for r in pairs.run_b], dtype=np.int64)
    present = (a >= 0) & (b >= 0)
    answered = predictions.ok[a] & predictions.ok[b]
    tokens, peak = predictions.tokens_per_s_per_gpu_p50, predictions.peak_memory_gib
    measured = np.where(present, pairs.ratio, np.nan)
    columns: dict[str, Any] = {
        "predicted_ratio": np.where(present & answered, tokens[b] / tokens[a], np.nan),
        "measured_ratio": measured,
        "refused": present & ~answered & np.isfinite(measured),
    }
    memory = np.where(present, pairs.memory_ratio, np.nan)
    parts = {"knob": pairs.knob, **{name: column[a] for name, column in labels.items()}}
    left_out = {
        "a run of the pair is not in the file": ~present,
        "no measured ratio": present & ~np.isfinite(pairs.ratio),
    }
    return PairSection(
        overall=scored_pairs(**columns),
        memory=scored_pairs(
            predicted_ratio=np.where(present & answered, peak[b] / peak[a], np.nan),
            measured_ratio=memory,
            refused=present & ~answered & np.isfinite(memory),
        ),
        by={name: scored_pairs_by(column, **columns) for name, column in parts.items()},
        left_out=counted(left_out),
    )
