"""Forecast published runs from what they say of themselves; never from what they measured.

Blanks are inferred (recompute and degrees: the least that fits the memory; sharding: the
stack's habit; network: the accelerator's usual machine), and each widens the interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.run_words import PRECISION_NAMES, SHARDING_NAMES, network_bytes_per_s, offloaded_to
from core import efficiency as efficiencies
from core import transformer, uncertainty, workload
from core.accelerator import Accelerator
from core.adapters import nf4_bytes_per_param, trained_fraction
from core.cluster import Cluster, cluster_of
from core.cluster import as_columns as cluster_columns
from core.efficiency import Efficiency
from core.errors import RuncastError
from core.inference import least_recompute, smallest_degrees, total, with_paged_optimizer
from core.layouts import RECOMPUTE, SCHEDULES, SEARCHED_RECOMPUTE, Layouts
from core.memory import peak_bytes, unreported_bytes
from core.precision import PRECISIONS
from core.sharding import GRADIENT_BYTES, INDEX
from core.step import step
from core.units import GIB
from core.workload import Workload
from hardware.efficiency import GENERIC, Stack, efficiency, stack_of, stacks
from hardware.facts import accelerator, fabric
from hardware.measured import RunInputs
from hardware.measured_model import ModelFacts

# Recipes that page an 8-bit optimizer and update in backward where one GPU trains every weight
# (pytorch/torchtune@02d703550: recipes/configs/llama3_1/8B_full_single_device.yaml).
PAGED_RECIPES = ("torchtune",)
LORA_RANK = 16  # of adapters on every matrix, where rows do not say
FLAGS = (
    "adapters",
    "orthogonalises",
    "paged_optimizer",
    "offloads_activations",
    "unfused_attention",
    "flash2",
    "compiled",
    "cuda_graphs",
    "chunked_loss",
)
# FlashAttention (arXiv:2205.14135) and sequence parallelism (arXiv:2205.05198) were published in
# May 2022: no run before had either.
NEW_KERNELS = "2022-06"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """Columns aligned with the inputs; NaN where refused."""

    tokens_per_s_per_gpu_p10: NDArray[np.float64]
    tokens_per_s_per_gpu_p50: NDArray[np.float64]
    tokens_per_s_per_gpu_p90: NDArray[np.float64]
    peak_memory_gib_p10: NDArray[np.float64]
    peak_memory_gib: NDArray[np.float64]  # P50
    peak_memory_gib_p90: NDArray[np.float64]
    probability_oom: NDArray[np.float64]
    ok: NDArray[np.bool_]
    reason: NDArray[np.object_]  # '' where ok


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One run as scalars, and how much of it was inferred."""

    work: Workload
    layout: dict[str, float]
    cluster: Cluster
    efficiency: Efficiency
    recomputes: tuple[str, ...]  # what it may be: said, or the stack's habit; () for any
    may_page: bool  # its recipe keeps the optimizer on the host where nothing else fits
    sigma: float
    memory_sigma: float


def predict(inputs: RunInputs, models: Mapping[str, ModelFacts]) -> Predictions:
    """Forecast every row; a row that cannot be forecast says why and stops no other."""
    rows: list[_Row] = []
    reasons = np.full(len(inputs), "", dtype=object)
    kept = []
    for i in range(len(inputs)):
        try:
            rows.append(_row(inputs, i, models))
            kept.append(i)
        except RuncastError as e:
            reasons[i] = str(e)
    names = ("p10", "p50", "p90", "gib_p10", "gib", "gib_p90", "oom")
    result = {name: np.full(len(inputs), np.nan) for name in names}
    if rows:
        index = np.array(kept)
        for name, column in _forecast(rows).items():
            result[name][index] = column
    finite = np.isfinite(result["p50"]) & (result["p50"] > 0)
    unknown = (reasons == "") & ~finite
    reasons[unknown] = "The accelerator lacks the precision of this run."
    return Predictions(
        tokens_per_s_per_gpu_p10=result["p10"],
        tokens_per_s_per_gpu_p50=result["p50"],
        tokens_per_s_per_gpu_p90=result["p90"],
        peak_memory_gib_p10=result["gib_p10"],
        peak_memory_gib=result["gib"],
        peak_memory_gib_p90=result["gib_p90"],
        probability_oom=result["oom"],
        ok=finite,
        reason=reasons,
    )


def columns_of(rows: list[_Row]) -> tuple[Workload, Layouts, Cluster, Efficiency]:
    """All rows as one workload, layout, cluster and efficiency of columns."""
    names = [f for f in Workload.__dataclass_fields__ if f != "model"]
    values: dict[str, Any] = {
        n: np.array([getattr(r.work, n) for r in rows], dtype=float) for n in names
    }
    for flag in FLAGS:
        values[flag] = values[flag] > 0
    model = transformer.as_columns([r.work.model for r in rows])
    layouts = Layouts(
        **{n: np.array([r.layout[n] for r in rows]) for n in Layouts.__dataclass_fields__}
    )
    return (
        workload.Workload(model=model, **values),
        layouts,
        cluster_columns([r.cluster for r in rows]),
        efficiencies.as_columns([r.efficiency for r in rows]),
    )


def _forecast(rows: list[_Row]) -> dict[str, NDArray[np.float64]]:
    work, lay, cluster, eff = columns_of(rows)
    kinds = [r.recomputes or SEARCHED_RECOMPUTE for r in rows]
    allowed = np.array([[kind in k for kind in RECOMPUTE] for k in kinds])
    lay = replace(lay, recompute=least_recompute(work, lay, cluster, eff, allowed=allowed))
    may_page = np.array([r.may_page for r in rows])
    work = with_paged_optimizer(work, lay, cluster, eff, may=may_page)
    forecast = step(work, lay, cluster, eff)
    need = total(peak_bytes(work, lay, cluster, eff))
    sigma = np.array([r.sigma for r in rows])
    memory_sigma = np.array([r.memory_sigma for r in rows])
    shown = need - unreported_bytes(lay, cluster, eff)  # what the stack prints as its peak
    p50 = forecast.tokens_per_s_per_gpu
    oom = uncertainty.probability_above(cluster.memory_bytes, p50=need, sigma=memory_sigma)
    return {
        "p10": np.asarray(uncertainty.p10(p50, sigma)),
        "p50": p50,
        "p90": np.asarray(uncertainty.p90(p50, sigma)),
        "gib_p10": np.asarray(uncertainty.p10(shown / GIB, memory_sigma)),
        "gib": shown / GIB,
        "gib_p90": np.asarray(uncertainty.p90(shown / GIB, memory_sigma)),
        "oom": np.asarray(oom),
    }


def _row(inputs: RunInputs, i: int, models: Mapping[str, ModelFacts]) -> _Row:
    key = str(inputs.model_key[i])
    if key not in models:
        raise RuncastError(f"Model {key!r} is not in the models file.")
    facts = models[key]
    chip = accelerator(str(inputs.accelerator[i]))
    stack = stack_of(str(inputs.framework[i]))
    eff = efficiency(stack.name if stack else GENERIC)
    work = _work(inputs, i, facts, stack)
    cluster, network_known = _cluster(inputs, i, chip)
    sharding, sharding_known = _sharding(inputs, i, stack or stacks()[GENERIC])
    layout, degrees_known = _layout(inputs, i, facts, work, cluster, eff, sharding)
    recompute = str(inputs.recompute[i])
    habit = tuple(stack.recompute.split()) if stack else ()
    said = recompute in RECOMPUTE
    recomputes = (recompute,) if said else tuple(h for h in habit if h in RECOMPUTE)
    multi_node = float(inputs.num_gpus[i]) > float(np.asarray(cluster.gpus_per_node))
    unknown = [
        not said,
        inputs.precision[i] in ("", "unknown"),
        bool(np.isnan(inputs.vpp[i])) and layout["pp"] > 1,
        not degrees_known,
        not sharding_known,
        multi_node and not network_known,
        bool(np.isnan(inputs.global_batch[i]) or np.isnan(inputs.micro_batch[i])),
    ]
    if recomputes:
        layout["recompute"] = float(RECOMPUTE.index(recomputes[0]))
    extra = [float(eff.inferred_sigma) for u in unknown if u]
    of_memory = [
        len(recomputes) != 1,
        not degrees_known,
        not sharding_known,
        bool(np.isnan(inputs.micro_batch[i])),
    ]
    memory_extra = [float(eff.memory_inferred_sigma) for u in of_memory if u]
    if stack is None:
        extra.append(float(eff.unknown_stack_sigma))
        memory_extra.append(float(eff.unknown_stack_sigma))
    if chip.matmul_flops_per_s is None:
        extra.append(float(eff.unmeasured_sigma))
    return _Row(
        work=work,
        layout=layout,
        cluster=cluster,
        efficiency=eff,
        recomputes=recomputes,
        may_page=stack is not None
        and stack.name in PAGED_RECIPES
        and float(inputs.num_gpus[i]) == 1
        and not work.adapters,
        sigma=float(np.asarray(uncertainty.quadrature(eff.throughput_sigma, *extra))),
        memory_sigma=float(np.asarray(uncertainty.quadrature(eff.memory_sigma, *memory_extra))),
    )


def _work(inputs: RunInputs, i: int, facts: ModelFacts, stack: Stack | None) -> Workload:
    name = str(inputs.precision[i])
    recipe = PRECISIONS.get(PRECISION_NAMES.get(name, name).replace("-", "_"), PRECISIONS["bf16"])
    task = str(inputs.task[i])
    adapters = task in ("lora", "qlora")
    offload = str(inputs.offload[i])
    return Workload(
        model=facts.transformer,
        seq_len=float(inputs.seq_len[i]),
        global_batch_size=float(inputs.global_batch[i]),
        matmul_bits=float(recipe.matmul_bits),
        quantised_bytes=recipe.quantised_bytes,
        adapters=adapters,
        trained_fraction=_adapters(facts) if adapters else 1.0,
        weight_bytes=nf4_bytes_per_param(double_quantisation=True) if task == "qlora" else 2.0,
        gradient_bytes=_gradient_bytes(stack, name),
        offload_optimizer=offloaded_to(offload, "optimizer"),
        offload_params=offloaded_to(offload, "param"),
        offloads_activations="activation" in offload,
        unfused_attention=_before_2022_06(inputs, i),
        compiled=_compiled(inputs, i, stack, recipe.matmul_bits),
    )


def _cluster(inputs: RunInputs, i: int, chip: Accelerator) -> tuple[Cluster, bool]:
    per_node = inputs.gpus_per_node[i]
    per_node = chip.gpus_per_node if np.isnan(per_node) else per_node
    domain = inputs.nvlink_domain[i]
    domain = chip.scale_up_domain if np.isnan(domain) else domain
    text = str(inputs.network[i])
    rate = network_bytes_per_s(text, float(per_node))
    known = rate is not None
    if rate is None:
        rate = chip.scale_out_bytes_per_s
    if rate is None:
        rate = fabric("ethernet_assumed", "instance_bytes_per_s") / float(per_node)
    return (
        cluster_of(
            chip,
            gpus_per_node=int(per_node),
            scale_up_domain=int(domain),
            scale_out_bytes_per_s=rate,
        ),
        known,
    )


def _sharding(inputs: RunInputs, i: int, stack: Stack) -> tuple[str, bool]:
    written = str(inputs.dp_sharding[i])
    if written in SHARDING_NAMES:
        return SHARDING_NAMES[written], True
    return stack.dp_sharding or "zero1", False


def _layout(
    inputs: RunInputs,
    i: int,
    facts: ModelFacts,
    work: Workload,
    cluster: Cluster,
    eff: Efficiency,
    sharding: str,
) -> tuple[dict[str, float], bool]:
    """The row's layout as scalars; blank degrees are the smallest that fit the memory."""
    gpus = float(inputs.num_gpus[i])
    tp, pp = float(inputs.tp[i]), float(inputs.pp[i])
    known = tp == tp and pp == pp
    if known:
        return _degrees(inputs, i, facts, sharding, tp, pp, float(cluster.gpus_per_node)), True
    tps, pps = smallest_degrees(
        heads=int(facts.transformer.num_attention_heads),
        layers=int(facts.transformer.num_layers),
        num_gpus=int(gpus),
        domain=int(max(cluster.scale_up_domain, 1)),
        tp=tp,
        pp=pp,
    )
    options = [
        _degrees(inputs, i, facts, sharding, float(t), float(p), float(cluster.gpus_per_node))
        for t, p in zip(tps, pps, strict=True)
    ]
    columns = Layouts(**{n: np.array([o[n] for o in options]) for n in options[0]})
    full = replace(columns, recompute=np.full(len(options), float(RECOMPUTE.index("full"))))
    need = total(peak_bytes(work, full, cluster, eff))
    fits = np.flatnonzero(need <= np.asarray(cluster.memory_bytes))
    return options[int(fits[0]) if len(fits) else int(np.argmin(need))], False


def _degrees(
    inputs: RunInputs,
    i: int,
    facts: ModelFacts,
    sharding: str,
    tp: float,
    pp: float,
    gpus_per_node: float,
) -> dict[str, float]:
    gpus = float(inputs.num_gpus[i])
    cp, ep = _or(inputs.cp[i], 1.0), _or(inputs.ep[i], 1.0)
    ranks = max(gpus / (tp * pp * cp), 1.0)
    moe = float(facts.transformer.num_experts) > 0
    etp = _or(inputs.etp[i], tp if moe and ep == 1 else 1.0)
    micro = inputs.micro_batch[i]
    batch = inputs.global_batch[i]
    if np.isnan(micro):
        # FSDP stacks cut a batch into as many micro-batches as there are stages
        # (pytorch/torchtitan@b5bcd76c: pipeline_parallel_microbatches); others into single ones.
        cuts = pp if pp > 1 and sharding in ("fsdp1", "fsdp2", "hsdp") else np.inf
        single = max(min(batch / ranks, 1.0), 1e-3)
        micro = 1.0 if np.isnan(batch) else max(batch / ranks / cuts, single)
    if np.isnan(batch):
        batch = ranks * micro * max(pp * 4, 1.0)
    shard = _or(inputs.fsdp_degree[i], ranks if sharding != "hsdp" else gpus_per_node)
    shard = min(shard / cp if shard > ranks else shard, ranks)
    if sharding not in ("fsdp2", "hsdp"):
        shard = ranks
    vpp = _or(inputs.vpp[i], 1.0)
    return {
        "num_gpus": gpus,
        "tp": tp,
        "pp": pp,
        "virtual_stages": vpp if pp > 1 else 1.0,
        "cp": cp,
        "ep": ep,
        "etp": etp,
        "dp_replicate": ranks / shard,
        "dp_shard": shard,
        "strategy": float(INDEX[sharding]),
        "micro_batch_size": float(micro),
        "num_microbatches": max(float(batch) / (ranks * float(micro)), 1.0),
        "recompute": 0.0,
        "sequence_parallel": 1.0 if tp > 1 and _splits_sequence(inputs, i) else 0.0,
        "schedule": float(SCHEDULES.index("1f1b")),
        "context_method": 0.0,
        "reshard": 1.0,
    }


def _compiled(inputs: RunInputs, i: int, stack: Stack | None, matmul_bits: int) -> bool:
    """As said. Matmuls of 8 or 4 bits need a compiler in PyTorch: without one, quantising
    costs more than they save (pytorch/ao: torchao/float8/README.md)."""
    said = str(inputs.compile[i])
    in_pytorch = stack is not None and stack.family == "fsdp"
    return said in ("yes", "thunder") or (said != "no" and matmul_bits < 16 and in_pytorch)


def _gradient_bytes(stack: Stack | None, precision: str) -> float:
    """Held per parameter: the stack's habit. An fp32 sum beside 16-bit gradients is for bf16;
    fp16 has loss scaling instead."""
    dtype = stack.gradient_dtype if stack else ""
    return GRADIENT_BYTES["bf16" if dtype == "bf16_fp32" and precision == "fp16" else dtype]


def _adapters(facts: ModelFacts) -> float:
    return float(np.asarray(trained_fraction(facts.transformer, rank=LORA_RANK, on_mlp=True)))


def _splits_sequence(inputs: RunInputs, i: int) -> bool:
    """Sequence parallelism came with selective recompute (arXiv:2205.05198), so that a run
    that has the one has the other."""
    return not _before_2022_06(inputs, i) or str(inputs.recompute[i]) == "selective"


def _before_2022_06(inputs: RunInputs, i: int) -> bool:
    date = str(inputs.source_date[i])[:7]
    return date != "" and date < NEW_KERNELS


def _or(value: float, default: float) -> float:
    return default if np.isnan(value) else float(value)
