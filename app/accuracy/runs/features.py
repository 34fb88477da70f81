"""The features of the software of a published run: as its row says, else the habit of its stack.

A blank cell, 'unknown' or a word that is not known here stands for the habit of the stack at that
date (hardware/stacks.csv, hardware/stack_habits.csv).
"""

from __future__ import annotations

import re
from math import nan
from typing import Any

import numpy as np

from app.accuracy.runs.words import SHARDING_NAMES
from core.layout.optimizers import OPTIMIZERS, optimizer
from core.layout.routing import MAX_VIO, MAX_VIO_OF_BIAS, max_vio_of_alike
from core.layout.sharding import GRADIENT_BYTES
from core.memory.activations import share_of_parts
from core.model.transformer import Transformer, is_moe
from core.time.repeated import matmul_shares
from core.time.software import decimal_year, is_since
from hardware.efficiency import GENERIC, Stack, stack_of
from hardware.habits.adapters import EAGER, FUSED, LINEAR_LOSS, runs_eagerly
from hardware.habits.optimizers import factors_by_operator, lists_tensors
from hardware.habits.remat import KEPT, WHOLE_POLICIES, offloads, repeated
from hardware.habits.workload_fields import ON, workload_fields
from hardware.measured import RunInputs
from hardware.measured_cells import PACKED, PADDED
from hardware.model_facts import balances_by_bias
from hardware.stack_support import habit

# FlashAttention (arXiv:2205.14135) and sequence parallelism (arXiv:2205.05198) were published in
# May 2022; earlier runs had neither.
NEW_KERNELS = "2022-06"
NATIVE_KERNELS = "2026-01"  # PyTorch itself has Hopper and Blackwell kernels from here on
CHUNKED_TUNING = "2025-01"  # software for fine-tuning computes the loss in pieces from here on
XLA = "xla"  # its compiler fuses what follows the scores, whatever the kernel is called
OFF = "0"
GRAPHS = {"none": 0.0, "partial": 0.5, "full": 1.0}
# Attention kernels: whether the score matrix is written out, and whether newer ones exist.
UNFUSED = ("eager",)
BLOCKWISE = ("jax_flash",)  # FlashAttention's blocks in plain JAX
FLASH2 = ("sdpa", "fa1", "fa2", "xformers", "pallas_flash")
# At any date: a run that names one has no newer.
OLD_KERNELS = ("fa1", "fa2", "xformers", "pallas_flash")
BEST = ("fa3", "fa4", "cudnn", "splash", "nki", "gaudi_fused")
# A loss of 16-bit logits holds them, their log-softmax and the gradient of each (pytorch/pytorch@
# 0321fa774: aten/src/ATen/native/LossNLL.cpp), where software that does not say so holds fp32.
WHOLE, SIXTEEN_BIT = "standard", "standard_16"
LOSSES = (WHOLE, SIXTEEN_BIT, "parallel", "compiled", "chunked", "fused_linear")
SIXTEEN_BIT_LOGITS = 8.0
IN_PIECES = ("chunked", "fused_linear")
ONCE_PER_NODE = ("deepep", "hybridep")  # dispatchers that send a token to each node once
BY_MASKS = "einsum"
LOOP = "loop"  # one expert after another, by the host
EVERY_COPY = ("alltoall", "allgather", "dropless_grouped", BY_MASKS, LOOP)
OPTIMIZER_NAMES = {"distributed_adamw": "adamw", "paged_8bit": "adamw_8bit"}
ADAMW_BF16 = "adamw_bf16"
OPTIMIZER_WORDS = (*OPTIMIZERS, *OPTIMIZER_NAMES, ADAMW_BF16)
ADAMW_BF16_STATE_BYTES = 4.0  # two 16-bit moments
# Tokens of an example where packed fine-tuning data are not described: question answering and
# instructions, SQuAD in NeMo and Megatron-Bridge. Attention is small anywhere below a thousand.
PACKED_TOKENS = 200.0
DTYPE_BYTES = {"bf16": 2.0, "fp32": 4.0}
LIGHT_MODULES = re.compile(r"layernorm|moe_act|norm\+act|mla[_ ]up")  # recompute_detail
MLP_MODULES = re.compile(r"\bmoe\b|\bmlp\b")
ALIKE = "alike"  # all tokens of a batch are a word or its padding
BALANCES = {"forced": 1.0, "natural": nan, ALIKE: nan}  # of Workload.expert_imbalance
CORE_MODULES = re.compile("core[_ ]att")
SOME_LAYERS = re.compile(r"\b(\d+) of (\d+) layers")
EVERY = re.compile(r"\bevery (second|other|third|fourth|\d+)(?:st|nd|rd|th)? layer")
NUMERALS = {"second": 2.0, "other": 2.0, "third": 3.0, "fourth": 4.0}
ALL_LAYERS = re.compile(r"\b(?:all|every) (?:layers?|blocks?)\b|offload|by operator")
PACKINGS = (PACKED, PADDED)
ELEMENTWISE = (EAGER, FUSED)
MEASURES = ("allocated", "reserved", "device")


def year_of(inputs: RunInputs, i: int) -> float:
    """Decimal year of the software: of the commit that ran, else of the publication."""
    return decimal_year(str(inputs.software_date[i]) or str(inputs.source_date[i]))


def recompute_of(inputs: RunInputs, i: int, *, experts: bool) -> str:
    """The recompute mode of a run: as its row says, by the modules that it names. The `mlp` of a
    model with experts is that of its few dense layers."""
    stated, modules = str(inputs.recompute[i]), str(inputs.recompute_detail[i]).lower()
    if stated in ("none", "full", "offload") or modules.startswith("remat_policy"):
        return stated
    found = set(MLP_MODULES.findall(modules))
    if "moe" in found or (found and not experts):
        return "mlp"
    if found or LIGHT_MODULES.search(modules):
        return "norm_act"
    if CORE_MODULES.search(modules):
        return "selective"
    return "full" if SOME_LAYERS.search(modules) or EVERY.search(modules) else stated


def features(
    inputs: RunInputs, i: int, stack: Stack, matmul_bits: int, *, in_rack: bool = False
) -> dict[str, Any]:
    """The fields of `Workload` that follow from the software of a run. `in_rack`: the fast links of
    its machine join several nodes."""
    year = year_of(inputs, i)
    kernel = word(inputs, i, "attention_kernel", (*UNFUSED, *FLASH2, *BEST), stack)
    loss = word(inputs, i, "loss_kernel", LOSSES, stack)
    sends = word(inputs, i, "moe_dispatcher", (*ONCE_PER_NODE, *EVERY_COPY), stack)
    if in_rack and not sends:
        sends = habit(stack, "moe_dispatcher_in_racks", year)
    pretrains = str(inputs.task[i]) == "pretrain"
    if stack.name == GENERIC and not loss and year >= decimal_year(CHUNKED_TUNING):
        loss = "chunked" if stack.chunks_loss(pretrains=pretrains) else loss
    states = OPTIMIZER_NAMES.get(str(inputs.optimizer[i]), str(inputs.optimizer[i]))
    kept = optimizer(states if states in OPTIMIZERS else "adamw")
    compiled = _compiled(inputs, i, stack, matmul_bits)
    of_stack = workload_fields(stack, year)
    return of_stack | {
        "software_year": year,
        "unfused_attention": (kernel in UNFUSED and stack.family != XLA)
        or (kernel not in (*FLASH2, *BEST, *BLOCKWISE) and year < decimal_year(NEW_KERNELS)),
        "blockwise_attention": kernel in BLOCKWISE,
        # A run whose attention is plain asks for no fused kernel, which might refuse its heads.
        "fused_heads_of": 1.0
        if kernel in UNFUSED
        else float(habit(stack, "fused_heads_of", year) or 1),
        "flash2": kernel in OLD_KERNELS
        or (
            (kernel in FLASH2 or (kernel not in BEST and stack.attention == "flash2"))
            and year < decimal_year(NATIVE_KERNELS)
        ),
        "compiled": compiled,
        "eager_norms": runs_eagerly(
            stack, year, tunes=not pretrains, said=str(inputs.elementwise_kernel[i]), loss=loss
        ),
        "compiled_loss": str(inputs.loss_kernel[i]) == "compiled"
        or (loss in ("", "compiled") and compiled and habit(stack, "compiled_loss", year) == ON),
        "whole_logits": loss in (WHOLE, SIXTEEN_BIT),
        "chunked_loss": loss in IN_PIECES,
        "loss_chunk_by_width": loss == LINEAR_LOSS,
        "logit_bytes": SIXTEEN_BIT_LOGITS if loss == SIXTEEN_BIT else of_stack["logit_bytes"],
        "cuda_graphs": GRAPHS.get(str(inputs.cuda_graphs[i]), 0.0),
        "async_tp": _flag(inputs.tp_overlap[i], bool(is_since(year, stack.async_tp_since))),
        "overlaps_gradients": _flag(
            inputs.grad_overlap[i],
            bool(is_since(year, stack.gradient_overlap_since))
            and habit(stack, "gradient_overlap", year) != OFF,
        ),
        "deduplicates": sends in ONCE_PER_NODE,
        "sums_whole_gradients": _sums_whole(inputs, i, stack),
        "overlaps_weights": _flag(
            inputs.param_overlap[i], habit(stack, "weights_overlap", year) != OFF
        ),
        "reduces_as_held": of_stack["reduces_as_held"] or str(inputs.grad_dtype[i]) in DTYPE_BYTES,
        "overlaps_experts": _flag(inputs.moe_overlap[i], False),
        "capacity_factor": _capacity_factor(inputs, i, stack),
        "loops_experts": sends == LOOP or (not sends and of_stack["loops_experts"]),
        "runs_every_expert": not sends and of_stack["runs_every_expert"],
        "routes_by_masks": sends == BY_MASKS
        or (not sends and habit(stack, "routes_by_masks", year) == ON),
        "document_tokens": _document_tokens(inputs, i, stack),
        "recomputed_layers": _recomputed_layers(inputs, i),
        "expert_imbalance": BALANCES.get(
            word(inputs, i, "router_balance", tuple(BALANCES), stack), nan
        ),
        "router_max_vio": max_vio_of_alike()
        if str(inputs.router_balance[i]) == ALIKE
        else MAX_VIO_OF_BIAS
        if balances_by_bias(str(inputs.model_key[i]).removesuffix("-671b").removesuffix("-mtp"))
        else MAX_VIO,
        "gradient_bytes": _gradient_bytes(inputs, i, stack),
        "optimizer_state_bytes": ADAMW_BF16_STATE_BYTES
        if states == ADAMW_BF16
        else kept.state_bytes,
        "ends_state_bytes": np.nan if kept.ends_state_bytes is None else kept.ends_state_bytes,
        "sets_state_type": states == ADAMW_BF16,
        "orthogonalises": kept.orthogonalises,
        "lists_tensors": lists_tensors(
            stack, year, optimizer=kept.name, tunes=not pretrains, compiled=compiled
        ),
        "factors_by_operator": factors_by_operator(stack, year, factors=kept.factors),
    }


def reported(inputs: RunInputs, i: int, stack: Stack) -> tuple[tuple[str, float], ...]:
    """Values of the profile that a row says itself: of its weights, and of its printed peak of
    memory."""
    said: dict[str, float] = {}
    measure = str(inputs.memory_measure[i])
    if measure in MEASURES:
        said["reserve_reported"] = float(measure == "device")
        said["fragmentation_reported"] = float(measure != "allocated")
    weights = DTYPE_BYTES.get(str(inputs.param_dtype[i]) or _tuned_weights(inputs, i, stack))
    if weights is not None:
        said["own_weight_bytes"] = weights
    return tuple(said.items())


def _tuned_weights(inputs: RunInputs, i: int, stack: Stack) -> str:
    """The type of weights that are tuned whole on each device, as the stack keeps them; '' where no
    habit says, where they are sharded, and where a model is made anew."""
    sharding = SHARDING_NAMES.get(str(inputs.dp_sharding[i]), stack.dp_sharding)
    whole = sharding == "ddp" and str(inputs.task[i]) == "sft"
    return habit(stack, "tuned_weights", year_of(inputs, i)) if whole else ""


def repeated_by_policy(inputs: RunInputs, i: int, model: Transformer) -> dict[str, Any]:
    """The fields of `Workload` that say what selective recompute keeps and repeats, where a row
    names the policy; what is repeated, of a dense model."""
    detail = str(inputs.recompute_detail[i])
    found = repeated(detail)
    waits = {"offloads_activations": 1.0} if offloads(detail) else {}
    if found is None:
        return waits
    kept = share_of_parts(
        model, qkv=not found.qkv, core=not found.core, out=not found.out, up=not found.up
    )
    said = waits | {"kept_by_policy": float(np.asarray(kept))}
    if bool(is_moe(model)):
        return said
    qkv, out, up = matmul_shares(model)
    share = qkv * found.qkv + out * found.out + up * found.up
    return said | {"repeated_matmuls": float(np.asarray(share)), "repeats_core": found.core}


def word(inputs: RunInputs, i: int, column: str, known: tuple[str, ...], stack: Stack) -> str:
    """The word of a cell if it is known, else the habit of the stack at that date."""
    written = str(getattr(inputs, column)[i])
    return written if written in known else habit(stack, column, year_of(inputs, i))


def _sums_whole(inputs: RunInputs, i: int, stack: Stack) -> bool:
    """Whether FSDP reduces gradients once a step. A stack whose habit is DeepSpeed means ZeRO-3 by
    zero3/fsdp, which reduces each time."""
    year = year_of(inputs, i)
    second = habit(stack, "gradient_sums_of_fsdp2", year)
    sums = second if second and inputs.dp_sharding[i] == "fsdp2" else ""
    return (sums or habit(stack, "gradient_sums", year)) == "whole" and stack.dp_sharding != "zero3"


def _capacity_factor(inputs: RunInputs, i: int, stack: Stack) -> float:
    """Rows that experts are padded to over the mean: as the row says, by 1 or by the factor; 0
    where they are not padded."""
    given = float(inputs.token_drop[i])
    usual = float(habit(stack, "token_drop", year_of(inputs, i)) == ON)
    return usual if np.isnan(given) else given


def _document_tokens(inputs: RunInputs, i: int, stack: Stack) -> float:
    """Mean length of the documents that attention keeps apart; NaN where it covers the sequence."""
    # 'ms-swift/megatron': the one in front prepares the data, the other trains.
    prepares = stack_of(str(inputs.framework[i]).split("/")[0]) or stack
    year = year_of(inputs, i)
    apart = ON in (habit(s, "masks_documents", year) for s in (stack, prepares))
    if inputs.packing[i] != PACKED or inputs.task[i] == "pretrain" or not apart:
        return nan
    given = float(inputs.avg_tokens[i])
    return PACKED_TOKENS if np.isnan(given) else given


def _recomputed_layers(inputs: RunInputs, i: int) -> float:
    """Share of the layers that are computed again, where a row prints how many of how many, or
    each how manieth. No fraction of the software, which a fit would overwrite."""
    detail = str(inputs.recompute_detail[i]).lower()
    if some := SOME_LAYERS.search(detail):
        again, layers = (float(n) for n in some.groups())
        return min(again / max(layers, 1.0), 1.0)
    if each := EVERY.search(detail):
        return 1 / max(NUMERALS.get(each[1]) or float(each[1]), 1.0)
    return 1.0


def is_understood(detail: str) -> bool:
    """Whether a row's `recompute_detail` says something that a forecast reads, or nothing."""
    words = detail.lower()
    patterns = (
        LIGHT_MODULES, MLP_MODULES, CORE_MODULES, SOME_LAYERS, EVERY, ALL_LAYERS,
    )  # fmt: skip
    policy = words.startswith(KEPT) and (repeated(words) is not None or words in WHOLE_POLICIES)
    return not words or policy or any(p.search(words) for p in patterns)


def _flag(given: float, usual: bool) -> bool:
    return usual if np.isnan(given) else bool(given)


def _compiled(inputs: RunInputs, i: int, stack: Stack, matmul_bits: int) -> bool:
    """Whether the run was compiled: as the row states, else if PyTorch ran 8- or 4-bit matmuls.

    Without a compiler, quantising costs more than such matmuls save
    (pytorch/ao: torchao/float8/README.md).
    """
    stated = str(inputs.compile[i])
    in_pytorch = stack.family in ("torch", "composer", "transformers")
    return stated in ("yes", "thunder") or (stated != "no" and matmul_bits < 16 and in_pytorch)


def _gradient_bytes(inputs: RunInputs, i: int, stack: Stack) -> float:
    """Gradient bytes per parameter: as the row states, else as the stack keeps them by default.

    Stacks that accumulate gradients in fp32 do so for bf16; fp16 uses loss scaling instead.
    """
    stated = str(inputs.grad_dtype[i])
    if stated in DTYPE_BYTES and stack.gradient_dtype != "bf16_fp32":
        return DTYPE_BYTES[stated]
    # In JAX a gradient has the type of its parameter (docs.jax.dev: custom derivatives).
    if stack.family == XLA and str(inputs.param_dtype[i]) == "bf16":
        return DTYPE_BYTES["bf16"]
    in_fp32 = stack.gradient_dtype in ("fp32", "bf16_fp32")
    fp16 = str(inputs.precision[i]) == "fp16"
    return GRADIENT_BYTES["bf16" if in_fp32 and fp16 else stack.gradient_dtype]
