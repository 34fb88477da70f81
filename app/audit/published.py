"""The published runs that a claim is compared with, and the best one of its class.

FLOP/s per GPU are comparable within a class: the accelerator, the width of the matmuls (16, 8 or 4
bits), dense or mixture of experts, and between half and twice the active parameters. If a class has
only one publication, its best run says little about what is possible, so the best share of the
dense peak on related accelerators counts as well. Runs that train only adapters, at 4 P a token,
bound only claims that do so too: they exchange few gradients. Excluded are wide models cut to a few
layers for a benchmark, which nobody trains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np

from app.accuracy.row_words import PRECISION_NAMES
from core.evidence.claimed_speed import (
    FROZEN_FLOPS,
    attention_flops_per_token,
    rule_flops_per_token,
)
from core.layout.precision import PRECISIONS
from core.machine.accelerator import Accelerator
from core.model.presets import preset
from core.model.transformer import Transformer, active_params, is_moe
from core.numeric import as_float
from hardware import facts
from hardware.measured import MODELS_CSV, RUNS_CSV, read_models, read_runs
from hardware.published_rates import PublishedRate, published_rates

SAME_MODEL = 0.02  # relative difference of active parameters within which two models are the same
ALIKE = 2.0  # largest ratio of active parameters within a class, either way
TASKS = ("pretrain", "sft")
ADAPTER_TASKS = ("lora", "qlora")
# Width over layers: at most 200 in models that are trained (Megatron 1T), at least 264 in models
# cut for a benchmark (Llama 3.1 405B with 62 layers).
WIDEST = 250.0
PEAKS = {16: "bf16_flops_per_s", 8: "fp8_flops_per_s", 4: "fp4_flops_per_s"}  # by width of matmuls


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun(PublishedRate):
    """One published run. FLOP/s are per GPU: 6 P, 4 P of adapters, and causal attention."""

    name: str
    generation: str  # of the accelerator's architecture
    bits: int
    has_experts: bool
    active_params: float
    flops_per_s: float
    share_of_peak: float  # of the dense peak at the width of its matmuls


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The run that bounds a claim; `flops_per_s` is scaled to the accelerator of the claim."""

    run: PublishedRun
    flops_per_s: float
    scope: str  # in words: among which runs it is the best
    in_class: bool
    num_runs: int  # in the class


def peak_flops_per_s(chip: Accelerator, bits: int) -> float | None:
    """Dense peak of matmuls of this width; None where no source prints one."""
    peak: float | None = getattr(chip, PEAKS[bits])
    return peak


def is_cut(model: Transformer) -> bool:
    """Whether the model has the width of a large model and the layers of a small one."""
    return as_float(model.hidden_size) > WIDEST * as_float(model.num_layers)


@cache
def published_runs(
    *, with_cut: bool = False, with_adapters: bool = False
) -> tuple[PublishedRun, ...]:
    """Every run of all weights with a usable rate: shipped rows, and rates that sources print.
    `with_cut`: those of models cut for a benchmark, too, which bound claims of such models;
    `with_adapters`: those that train only adapters, too."""
    runs, models = read_runs(RUNS_CSV), read_models(MODELS_CSV).facts
    inputs, rates = runs.inputs, runs.measured.tokens_per_s_per_gpu
    found = []
    for i in np.flatnonzero(runs.measured.throughput_ok & np.isfinite(rates)):
        model = models.get(str(inputs.model_key[i]))
        adapters = str(inputs.task[i]) in ADAPTER_TASKS
        if np.isnan(inputs.seq_len[i]) or not (
            str(inputs.task[i]) in TASKS or (adapters and with_adapters)
        ):
            continue
        if model is None or (is_cut(model.transformer) and not with_cut):
            continue
        rate = PublishedRate(
            model=str(inputs.model_key[i]),
            accelerator=facts.accelerator(str(inputs.accelerator[i])).name,
            precision=str(inputs.precision[i]) or "bf16",
            num_gpus=int(inputs.num_gpus[i]),
            seq_len=int(inputs.seq_len[i]),
            tokens_per_s_per_gpu=float(rates[i]),
            source=str(inputs.source[i]),
            source_date=str(inputs.source_date[i]),
        )
        found.append(_run(model.transformer, rate, name=str(inputs.run_id[i]), adapters=adapters))
    for rate in published_rates():
        name = f"{rate.model} on {rate.num_gpus} {rate.accelerator} in {rate.precision}"
        found.append(_run(preset(rate.model).transformer, rate, name=name))
    return tuple(r for r in found if r is not None)


def _run(
    model: Transformer, rate: PublishedRate, *, name: str, adapters: bool = False
) -> PublishedRun | None:
    """The run with its FLOP/s; None if no source prints the peak of its precision."""
    chip = facts.accelerator(rate.accelerator)
    recipe = PRECISION_NAMES.get(rate.precision, rate.precision).replace("-", "_")
    bits = PRECISIONS[recipe].matmul_bits if recipe in PRECISIONS else 16
    peak = peak_flops_per_s(chip, bits)
    if peak is None:
        return None
    attention = attention_flops_per_token(model, float(rate.seq_len))
    weights = rule_flops_per_token(model) * (FROZEN_FLOPS if adapters else 1.0)
    flops = rate.tokens_per_s_per_gpu * as_float(weights + attention)
    return PublishedRun(
        **asdict(rate),
        name=name,
        generation=chip.architecture.generation,
        bits=bits,
        has_experts=is_mixture(model),
        active_params=as_float(active_params(model)),
        flops_per_s=flops,
        share_of_peak=flops / peak,
    )


def is_mixture(model: Transformer) -> bool:
    """Whether the model is a mixture of experts."""
    return bool(np.asarray(is_moe(model)))


def published_bits(chip: Accelerator) -> tuple[int, ...]:
    """Widths of matmuls in which a training run on the accelerator's generation has been
    published; if the generation has none, on any accelerator."""
    generation = chip.architecture.generation
    of_generation = {r.bits for r in published_runs() if r.generation == generation}
    return tuple(sorted(of_generation or {r.bits for r in published_runs()}, reverse=True))


def usual_seq_len(model: Transformer) -> int | None:
    """The sequence length of most published runs of this model; None if there are none.

    >>> usual_seq_len(preset("deepseek-v3").transformer)
    4096
    """
    active, has_experts = as_float(active_params(model)), is_mixture(model)
    seen = Counter(
        r.seq_len
        for r in published_runs()
        if r.has_experts == has_experts and abs(r.active_params / active - 1) <= SAME_MODEL
    )
    return max(seen, key=lambda n: (seen[n], n)) if seen else None


def class_of(
    accelerator: str,
    *,
    bits: int,
    has_experts: bool,
    active: float,
    cut: bool = False,
    adapters: bool = False,
) -> tuple[PublishedRun, ...]:
    """The published runs of one class, the fastest first."""
    alike = _alike(bits, has_experts, active, cut, adapters)
    found = (r for r in alike if r.accelerator == accelerator)
    return tuple(sorted(found, key=lambda r: -r.flops_per_s))


def best_of(
    chip: Accelerator,
    *,
    bits: int,
    has_experts: bool,
    active: float,
    cut: bool = False,
    adapters: bool = False,
) -> Best | None:
    """The run that bounds a claim, and among which runs it is the best; None if no run with
    matmuls of this width has been published. `adapters`: the claim trains only adapters."""
    peak = peak_flops_per_s(chip, bits)
    if peak is None:
        return None
    own = class_of(
        chip.name, bits=bits, has_experts=has_experts, active=active, cut=cut, adapters=adapters
    )
    sort = "models with experts" if has_experts else "dense models"
    kind = f"{bits}-bit runs of {sort} of this size"
    choices = [
        Best(
            run=r,
            flops_per_s=r.flops_per_s,
            scope=f"{kind} on {chip.name}",
            in_class=True,
            num_runs=len(own),
        )
        for r in own[:1]
    ]
    if len({r.source for r in own}) >= 2:
        return choices[0]
    alike = _alike(bits, has_experts, active, cut, adapters)
    generation = chip.architecture.generation
    others = [r for r in alike if r.generation == generation and r.accelerator != chip.name]
    wider = f"{kind} on {generation if others else 'any accelerator'}"
    found = [(others or alike, wider)]
    if not own:
        known = published_runs(with_cut=cut, with_adapters=adapters)
        every = [r for r in known if r.bits == bits]
        on_chip = [r for r in every if r.accelerator == chip.name]
        found.append((on_chip, f"{bits}-bit runs of any model on {chip.name}"))
        if not alike and not on_chip:
            found.append((every, f"{bits}-bit runs of any model on any accelerator"))
    choices += [_scaled(runs, peak, scope, len(own)) for runs, scope in found if runs]
    return max(choices, key=lambda b: b.flops_per_s, default=None)


def _scaled(runs: Iterable[PublishedRun], peak: float, scope: str, num_runs: int) -> Best:
    """The run with the largest share of its own peak, scaled to the peak of the claim."""
    run = max(runs, key=lambda r: r.share_of_peak)
    return Best(
        run=run,
        flops_per_s=run.share_of_peak * peak,
        scope=f"{scope}, as a share of the dense peak",
        in_class=False,
        num_runs=num_runs,
    )


def _alike(
    bits: int, has_experts: bool, active: float, cut: bool, adapters: bool
) -> list[PublishedRun]:
    return [
        r
        for r in published_runs(with_cut=cut, with_adapters=adapters)
        if r.bits == bits
        and r.has_experts == has_experts
        and 1 / ALIKE <= r.active_params / active <= ALIKE
    ]
