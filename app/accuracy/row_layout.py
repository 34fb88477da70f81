"""The layout of a published run: what its row gives, and the least that fits where it is blank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from app.accuracy.scenario_of_row import PublishedRun
from app.forecast.whole_layout import GROUPED, layout_of
from core.evidence.inference import FITS, smallest_degrees, total
from core.explain.explain import columns_of
from core.layout.layouts import RECOMPUTE
from core.layout.workload import Workload
from core.machine.cluster import Cluster
from core.machine.efficiency import Efficiency
from core.memory.memory import peak_bytes
from core.numeric import as_float
from core.scenario import Scenario
from core.search.plan import Layout
from core.time.software import decimal_year
from hardware.efficiency import Stack
from hardware.stack_support import habit

FSDP = ("fsdp1", "fsdp2", "hsdp")
SINGLE_SEQUENCES = "2025-04"  # since when torchtitan cuts a batch into them
# Tokens of a micro-batch where a run does not say: about the median of the publications that do,
# with a pipeline, without one, and of fine-tuning without one.
TOKENS_IN_PIPELINE, TOKENS, TOKENS_TUNED = 4096.0, 16384.0, 8192.0
LONG = 4  # stages of a pipeline that is usually interleaved


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredLayout:
    """The scenario of a row with a whole layout, and which parts the row states."""

    scenario: Scenario  # its recompute: the first candidate
    layout: Layout
    recomputes: tuple[str, ...]  # candidates: as given, or the stack's defaults; () for any
    has_degrees: bool
    has_sharding: bool
    has_stages: bool
    has_micro_batch: bool


@overload
def inferred_layout(
    run: PublishedRun, work: Workload, cluster: Cluster, eff: Efficiency
) -> InferredLayout: ...


@overload
def inferred_layout(
    run: PublishedRun, work: Workload, cluster: Cluster, eff: None
) -> InferredLayout | None: ...


def inferred_layout(
    run: PublishedRun, work: Workload, cluster: Cluster, eff: Efficiency | None
) -> InferredLayout | None:
    """Complete the layout of a run; None without efficiencies where the memory decides. Degrees
    come first where they are open; a micro-batch is made smaller before more is computed again."""
    given, chip, stack = run.scenario, run.chip, run.stack
    year = decimal_year(given.software_date)
    (num_gpus,) = given.num_gpus
    sharding = given.sharding[0] if given.sharding else stack.dp_sharding or "zero1"
    if sharding == "fsdp2" and chip.vendor == "google":
        # The data-centre network joins TPU slices; runs replicate the model across slices.
        sharding = "hsdp" if num_gpus > as_float(cluster.scale_up_domain) else sharding
    if not given.sharding and sharding == "ddp" and num_gpus > 1:
        if eff is None:
            return None
        whole = _degrees(run, cluster, sharding, given.tp or 1, given.pp or 1)
        whole = whole.model_copy(update={"recompute": ("full",)})
        fits = _need([whole], work, cluster, eff)[0] <= FITS * _room(cluster)
        sharding = sharding if fits else "zero3"
    named = run.known_stack or bool(stack.software)
    reshards = not (sharding == "zero2" and named and gathers_once(stack))
    sharding = sharding if reshards else "fsdp2"
    options, has_degrees = _options(run, cluster, sharding)
    usual = (habit(stack, "unsaid_recompute", year) or stack.recompute).split()
    first = usual[0] if usual else "none"
    tried = given.recompute or (("full",) if not has_degrees else (first, "full"))
    scenario = options[0]
    if len(options) > 1:
        if eff is None:
            return None
        scenario = _first_that_fits(options, work, cluster, eff, recomputes=tried)
    recomputes: tuple[str, ...] = given.recompute
    if not recomputes:
        recomputes = tuple(mode for mode in usual if mode in RECOMPUTE)
    changes: dict[str, Any] = {
        "reshard_after_forward": reshards,
        "recompute": recomputes[:1] or ("none",),
    }
    if given.virtual_stages is None:
        least = habit(stack, "unsaid_chunk_layers", year)
        layers = as_float(run.facts.transformer.num_layers)
        changes["virtual_stages"] = usual_chunks(scenario, layers, float(least or "inf"))
    scenario = scenario.model_copy(update=changes)
    return InferredLayout(
        scenario=scenario,
        layout=layout_of(scenario),
        recomputes=recomputes,
        has_degrees=has_degrees,
        has_sharding=bool(given.sharding),
        has_stages=given.virtual_stages is not None or scenario.pp == 1,
        has_micro_batch=given.micro_batch_size is not None,
    )


def _options(run: PublishedRun, cluster: Cluster, sharding: str) -> tuple[list[Scenario], bool]:
    """The layouts that the row may have, and whether its tp and pp were given: the smallest degrees
    first, or where they are given and the micro-batch is not, the usual micro-batch first and then
    smaller ones."""
    given, model = run.scenario, run.facts.transformer
    tp = given.tp
    if tp is None and run.stack.family == "xla" and sharding in FSDP:
        tp = 1  # the default of MaxText's ici_tensor_parallelism; its recipes shard over fsdp
    tps, pps = smallest_degrees(
        heads=int(as_float(model.num_attention_heads)),
        layers=int(as_float(model.num_layers)),
        num_gpus=given.num_gpus[0],
        domain=int(max(as_float(cluster.scale_up_domain), 1)),
        tp=tp or np.nan,
        pp=given.pp or np.nan,
    )
    options = [
        _degrees(run, cluster, sharding, int(t), int(p)) for t, p in zip(tps, pps, strict=True)
    ]
    if len(options) > 1:
        return options, False
    if given.micro_batch_size is None and not _cuts_by_rule(run, sharding, options[0].pp or 1):
        options = list(_with_smaller_microbatches(options[0]))
    return options, tp is not None and given.pp is not None


def usual_chunks(scenario: Scenario, layers: float, chunk_layers: float) -> int:
    """Infer the chunks of each stage where a row does not state them: the most that divide a
    stage's layers and leave at least `chunk_layers` to each. One chunk in a pipeline of fewer than
    LONG stages, or if the micro-batches are no multiple of the stages."""
    layout = layout_of(scenario)
    pp, each = layout.pp, layers / layout.pp
    if pp < LONG or layout.num_microbatches % pp:
        return 1
    fitting = [v for v in range(2, int(each / chunk_layers) + 1) if each % v == 0]
    return max(fitting, default=1)


def _with_smaller_microbatches(scenario: Scenario) -> Iterator[Scenario]:
    """The layout, and as many sequences in more micro-batches, halved while they divide."""
    yield scenario
    size = scenario.micro_batch_size or 1
    while size % 2 == 0:
        size //= 2
        yield scenario.model_copy(update={"micro_batch_size": size})


def _first_that_fits(
    options: list[Scenario],
    work: Workload,
    cluster: Cluster,
    eff: Efficiency,
    *,
    recomputes: Sequence[str],
) -> Scenario:
    """The first layout that fits in memory, with the first of `recomputes` with which one does;
    where none does, the one that needs the least."""
    for mode in recomputes:
        tried = [option.model_copy(update={"recompute": (mode,)}) for option in options]
        need = _need(tried, work, cluster, eff)
        if len(fits := np.flatnonzero(need <= _room(cluster))):
            return options[int(fits[0])]
    return options[int(np.argmin(need))]


def _need(
    scenarios: Sequence[Scenario], work: Workload, cluster: Cluster, eff: Efficiency
) -> NDArray[np.float64]:
    """Bytes that each layout needs of one GPU."""
    lay = columns_of([layout_of(s) for s in scenarios], [s.num_gpus[0] for s in scenarios])
    return total(peak_bytes(work, lay, cluster, eff))


def _room(cluster: Cluster) -> float:
    return as_float(cluster.memory_bytes)


def gathers_once(stack: Stack) -> bool:
    """Whether ZeRO-2 in a stack's own words is FSDP that does not reshard after forward: it has no
    other way to shard gradients and states alone (torchtitan's fsdp_reshard_after_forward=never,
    PyTorch's SHARD_GRAD_OP). The weights are then masters of their own, gathered once a step."""
    return "zero2" not in stack.shardings and bool({"fsdp1", "fsdp2"} & set(stack.shardings))


def _degrees(run: PublishedRun, cluster: Cluster, sharding: str, tp: int, pp: int) -> Scenario:
    """The layout for a given tp and pp. Hybrid sharding shards over a node, or over a pod."""
    given, model = run.scenario, run.facts.transformer
    (gpus,) = given.num_gpus
    cp, ep = given.cp or 1, given.ep or 1
    ranks = max(gpus // (tp * pp * cp), 1)
    etp = given.etp or (tp if as_float(model.num_experts) > 0 and ep == 1 else 1)
    each = given.global_batch_size / ranks if run.batch_known else np.inf
    micro = given.micro_batch_size or round(_micro_batch(run, sharding, each, pp))
    batch = given.global_batch_size if run.batch_known else ranks * micro * max(pp * 4, 1)
    pod = as_float(cluster.scale_up_domain) > 72  # above the largest switched domain
    unit = as_float(cluster.scale_up_domain if pod else cluster.gpus_per_node)
    group = ranks if sharding != "hsdp" else unit
    group = group if np.isnan(run.shard_group) else run.shard_group
    group = int(min(group / cp if group > ranks else group, ranks))
    if sharding == "fsdp2" and group < ranks:
        sharding = "hsdp"
    divides = sharding in GROUPED and group < ranks
    fixed: Mapping[str, Any] = {
        "tp": tp, "pp": pp, "cp": cp, "ep": ep, "etp": etp,
        "virtual_stages": (given.virtual_stages or 1) if pp > 1 else 1,
        "sharding": (sharding,), "dp_shard": group if divides else None,
        "micro_batch_size": max(micro, 1), "global_batch_size": int(batch),
    }  # fmt: skip
    return given.model_copy(update=fixed)


def _micro_batch(run: PublishedRun, sharding: str, each: float, pp: int) -> float:
    """Sequences of a micro-batch where the row does not say; a replica has `each` of a batch."""
    if np.isinf(each):
        return 1.0 if run.stack.family == "xla" else _usual_sequences(run, each, pp)
    if _cuts_by_rule(run, sharding, pp):
        return max(each / pp, min(each, 1.0))
    return _usual_sequences(run, each, pp)


def _cuts_by_rule(run: PublishedRun, sharding: str, pp: int) -> bool:
    """Whether the software cuts a batch itself: FSDP stacks into as many micro-batches as there are
    stages (pytorch/torchtitan@b5bcd76c: pipeline_parallel_microbatches) until April 2025 (its pull
    request 1073); JAX recipes give a batch per device and do not accumulate
    (AI-Hypercomputer/maxtext@09d2025bc: src/MaxText/configs/base.yml: per_device_batch_size,
    gradient_accumulation_steps)."""
    old = decimal_year(run.scenario.software_date) < decimal_year(SINGLE_SEQUENCES)
    return run.stack.family == "xla" or (pp > 1 and sharding in FSDP and old)


def _usual_sequences(run: PublishedRun, most: float, pp: int) -> float:
    """Sequences of a usual micro-batch: the largest power of two in its tokens that divides what a
    replica has of a batch, `most`."""
    tuned = run.scenario.task != "pretrain"
    tokens = TOKENS_IN_PIPELINE if pp > 1 else TOKENS_TUNED if tuned else TOKENS
    micro = 1.0
    while 2 * micro * run.scenario.seq_len <= tokens and (
        np.isinf(most) or most % (2 * micro) == 0
    ):
        micro *= 2
    return micro
