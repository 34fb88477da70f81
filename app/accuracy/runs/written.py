"""One published run as it is written: what no efficiency changes.

Blank settings are inferred: degrees as the least that fits the memory, sharding as the stack's
default, the network as that of the accelerator's usual machine. Inferred settings are counted,
because each one widens the interval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from app.accuracy.runs.features import (
    DTYPE_BYTES,
    OFF,
    XLA,
    features,
    recompute_of,
    repeated_by_policy,
    reported,
    year_of,
)
from app.accuracy.runs.layout import (
    first_that_fits,
    gathers_once,
    given_or,
    layouts_of,
    sharding_that_fits,
    usual_chunks,
)
from app.accuracy.runs.words import (
    PRECISION_NAMES,
    SHARDING_NAMES,
    network_bytes_per_s,
    network_fabric,
    offloaded_to,
)
from core.errors import RuncastError
from core.evidence.uncertainty import OF_STEP, doublings
from core.layout.layouts import RECOMPUTE
from core.layout.precision import PRECISIONS
from core.layout.workload import Workload
from core.machine.accelerator import Accelerator
from core.machine.cluster import Cluster, cluster_of
from core.machine.efficiency import Efficiency
from core.model.adapters import nf4_bytes_per_param, trained_fraction
from core.model.transformer import is_moe
from core.numeric import Numeric
from hardware.efficiency import Stack, stack_of
from hardware.facts import accelerator, all_to_all_share, fabric, scale_up_hop_s
from hardware.habits.adapters import ATTENTION, QKV, adapter_fields, targets_of
from hardware.habits.unnamed import software_of
from hardware.measured import RunInputs, measured_accelerators
from hardware.measured_model import ModelFacts
from hardware.stack_support import habit

# Recipes that page an 8-bit optimizer and update in backward where one GPU trains every weight
# (pytorch/torchtune@02d703550: recipes/configs/llama3_1/8B_full_single_device.yaml).
PAGED_RECIPES = ("torchtune",)
# Modelled as fp8 at the peak of the integer units. Scales run along the dimension that is summed
# over, so each matmul finds the largest element of both inputs and casts them anew: 16 bits read
# twice, 8 written (google/aqt: aqt/jax/v2/config.py, config_v3; MaxText's quantization=int8).
INT8, INT8_BYTES = "int8", 5.0
LORA_RANK = 16.0  # assumed, with adapters on every matrix, where a row does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Layout and recompute of one run, and what of it was inferred."""

    layout: dict[str, float]
    recomputes: tuple[str, ...]  # candidates: as given, or the stack's defaults; () for any
    circumstances: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One run as it is written: what no efficiency changes."""

    facts: ModelFacts
    chip: Accelerator
    known_stack: Stack | None
    stack: Stack
    profile: str
    cluster: Cluster
    network_known: bool
    work: Workload
    may_page: bool  # its recipe pages the optimizer to the host if nothing else fits
    said: tuple[tuple[str, float], ...]  # efficiencies that the row states itself
    placed: Placed | None  # None where the memory decides


def _frozen_bytes(task: str, dtype: str) -> float:
    """Bytes that a frozen weight is kept in."""
    if task == "qlora":
        return nf4_bytes_per_param(double_quantisation=True)
    return DTYPE_BYTES["fp32"] if dtype == "fp32" and task == "lora" else DTYPE_BYTES["bf16"]


def _read(inputs: RunInputs, i: int, models: Mapping[str, ModelFacts]) -> Read:
    """What a row says, whatever the efficiencies are."""
    key = str(inputs.model_key[i])
    if key not in models:
        raise RuncastError(f"Model {key!r} is not in the models file.")
    facts = models[key]
    chip = accelerator(str(inputs.accelerator[i]))
    if str(inputs.precision[i]) == INT8 and chip.int8_flops_per_s is not None:
        chip = replace(chip, fp8_flops_per_s=chip.int8_flops_per_s)
    known_stack = stack_of(str(inputs.framework[i]))
    stack, profile = _software(inputs, i, chip, known_stack)
    cluster, network_known = _cluster(inputs, i, chip)
    in_rack = float(np.asarray(cluster.scale_up_domain)) > float(np.asarray(cluster.gpus_per_node))
    work = _work(inputs, i, facts, stack, in_rack=in_rack)
    read = Read(
        facts=facts,
        chip=chip,
        known_stack=known_stack,
        stack=stack,
        profile=profile,
        cluster=cluster,
        network_known=network_known,
        work=work,
        may_page=stack.name in PAGED_RECIPES
        and float(inputs.num_gpus[i]) == 1
        and not work.adapters,
        said=reported(inputs, i, stack),
        placed=None,
    )
    return replace(read, placed=placed(read, inputs, i, None))


def read_or_why(inputs: RunInputs, i: int, models: Mapping[str, ModelFacts]) -> Read | str:
    """What a row says, or why it cannot be read."""
    try:
        return _read(inputs, i, models)
    except RuncastError as e:
        return str(e)


@overload
def placed(of: Read, inputs: RunInputs, i: int, eff: Efficiency) -> Placed: ...


@overload
def placed(of: Read, inputs: RunInputs, i: int, eff: None) -> Placed | None: ...


def placed(of: Read, inputs: RunInputs, i: int, eff: Efficiency | None) -> Placed | None:
    """Layout and recompute of a row; None without efficiencies where the memory decides."""
    facts, chip, known_stack, stack = of.facts, of.chip, of.known_stack, of.stack
    cluster, work = of.cluster, of.work
    written = str(inputs.dp_sharding[i])
    sharding = SHARDING_NAMES.get(written, stack.dp_sharding or "zero1")
    if sharding == "fsdp2" and chip.vendor == "google":
        # The data-centre network joins TPU slices; runs replicate the model across slices.
        sharding = "hsdp" if float(inputs.num_gpus[i]) > cluster.scale_up_domain else sharding
    if written not in SHARDING_NAMES and sharding == "ddp" and float(inputs.num_gpus[i]) > 1:
        if eff is None:
            return None
        sharding = sharding_that_fits(inputs, i, facts, work, cluster, eff, sharding)
    named = known_stack is not None or bool(stack.software)
    stays = sharding == "zero2" and named and gathers_once(stack)
    sharding = "fsdp2" if stays else sharding
    options, has_degrees = layouts_of(inputs, i, facts, cluster, sharding, xla=stack.family == XLA)
    if len(options) > 1 and eff is None:
        return None
    recompute = recompute_of(inputs, i, experts=bool(is_moe(facts.transformer)))
    stated = recompute in RECOMPUTE
    unsaid = habit(stack, "unsaid_recompute", year_of(inputs, i))
    usual = (unsaid or stack.recompute).split()
    if eff is None:
        layout = options[0]
    else:
        # Degrees come first where they are open; a micro-batch is made smaller before more is
        # computed again.
        first = usual[0] if usual else "none"
        tried = (recompute,) if stated else ("full",) if not has_degrees else (first, "full")
        layout = first_that_fits(options, work, cluster, eff, recomputes=tried)
    layout["reshard"] = float(not stays)
    if np.isnan(inputs.vpp[i]):
        chunk = habit(stack, "unsaid_chunk_layers", year_of(inputs, i))
        layers = float(np.asarray(facts.transformer.num_layers))
        layout["virtual_stages"] = usual_chunks(layout, layers, float(chunk or "inf"))
    if habit(stack, "sequence_parallel", year_of(inputs, i)) == OFF:
        layout["sequence_parallel"] = 0.0
    recomputes = (recompute,) if stated else tuple(h for h in usual if h in RECOMPUTE)
    multi_node = float(inputs.num_gpus[i]) > float(np.asarray(cluster.gpus_per_node))
    unknown = [
        not stated,
        inputs.precision[i] in ("", "unknown"),
        bool(np.isnan(inputs.vpp[i])) and layout["pp"] > 1,
        not has_degrees,
        written not in SHARDING_NAMES,
        multi_node and not of.network_known,
        bool(np.isnan(inputs.global_batch[i]) or np.isnan(inputs.micro_batch[i])),
    ]
    if recomputes:
        layout["recompute"] = float(RECOMPUTE.index(recomputes[0]))
    of_memory = [
        len(recomputes) != 1,
        not has_degrees,
        written not in SHARDING_NAMES,
        bool(np.isnan(inputs.micro_batch[i])),
    ]
    return Placed(
        layout=layout,
        recomputes=recomputes,
        circumstances={
            "num_inferred": float(sum(unknown)),
            "num_inferred_of_memory": float(sum(of_memory)),
            "unknown_stack": float(known_stack is None),
            "unmeasured": float(chip.matmul_flops_per_s is None),
            "unseen_accelerator": float(chip.name not in measured_accelerators()),
            "doublings": float(np.asarray(doublings(inputs.num_gpus[i]))),
            "network_guessed": float(multi_node and not of.network_known),
            **dict.fromkeys(OF_STEP, 0.0),
            "experts": float(np.asarray(facts.transformer.num_experts) > 0),
            "adapters": float(work.adapters),
        },
    )


def _software(
    inputs: RunInputs, i: int, chip: Accelerator, known: Stack | None
) -> tuple[Stack, str]:
    """What a row's stack does, or is assumed to do, and the name of its profile."""
    if known is not None:
        return known, known.name
    degrees = (inputs.tp[i], inputs.pp[i], inputs.cp[i], inputs.ep[i])
    found = software_of(
        str(inputs.framework[i]),
        vendor=chip.vendor,
        task=str(inputs.task[i]),
        sharding=SHARDING_NAMES.get(str(inputs.dp_sharding[i]), "ddp"),
        divided=any(given_or(degree, 1.0) > 1 for degree in degrees),
    )
    return found.stack, found.profile


def _work(inputs: RunInputs, i: int, facts: ModelFacts, stack: Stack, *, in_rack: bool) -> Workload:
    name = str(inputs.precision[i])
    recipe = PRECISIONS.get(PRECISION_NAMES.get(name, name).replace("-", "_"), PRECISIONS["bf16"])
    task = str(inputs.task[i])
    adapters = task in ("lora", "qlora")
    trained: Numeric = 1.0
    targets = targets_of(stack, year_of(inputs, i), str(inputs.lora_targets[i]))
    if adapters:
        rank = given_or(inputs.lora_rank[i], LORA_RANK)
        trained = trained_fraction(
            facts.transformer, rank=rank, on_mlp=targets not in (ATTENTION, QKV)
        )
    offload = str(inputs.offload[i])
    return Workload(
        model=facts.transformer,
        seq_len=float(inputs.seq_len[i]),
        global_batch_size=float(inputs.global_batch[i]),
        matmul_bits=float(recipe.matmul_bits),
        quantised_bytes=INT8_BYTES * 2 if name == INT8 else recipe.quantised_bytes,
        quantised_weight_bytes=INT8_BYTES if name == INT8 else 0.0,
        gathers_in_8_bits=recipe.name == "fp8"
        and habit(stack, "float8_gathers", year_of(inputs, i)) == "1",
        adapters=adapters,
        trained_fraction=float(np.asarray(trained)),
        weight_bytes=_frozen_bytes(task, str(inputs.param_dtype[i])),
        offload_optimizer=offloaded_to(offload, "optimizer"),
        offload_params=offloaded_to(offload, "param"),
        **adapter_fields(stack, task, year_of(inputs, i), targets=targets),
        **features(inputs, i, stack, recipe.matmul_bits, in_rack=in_rack),
        **(
            {"offloads_activations": float("activation" in offload)}
            | repeated_by_policy(inputs, i, facts.transformer)
        ),
    )


def _cluster(inputs: RunInputs, i: int, chip: Accelerator) -> tuple[Cluster, bool]:
    """The cluster of a run, and whether the run states its network."""
    per_node = given_or(inputs.gpus_per_node[i], chip.gpus_per_node)
    text = str(inputs.network[i])
    stated = network_bytes_per_s(text, per_node)
    assumed = fabric("ethernet_assumed", "instance_bytes_per_s") / per_node
    cluster = cluster_of(
        chip,
        gpus_per_node=int(per_node),
        scale_up_domain=int(given_or(inputs.nvlink_domain[i], chip.scale_up_domain)),
        scale_out_bytes_per_s=stated or chip.scale_out_bytes_per_s or assumed,
        scale_up_hop_s=scale_up_hop_s(chip),
        scale_out_hop_s=fabric(network_fabric(text), "latency_s"),
        scale_out_all_to_all=all_to_all_share(network_fabric(text)),
    )
    return cluster, stated is not None
