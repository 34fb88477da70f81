"""The scenario of a published run: what its row says, as the options of a user's question.

The only way from a row of hardware/measured_runs.csv to a forecast. A blank cell, or a word that no
option knows, is the habit of the run's stack at its date (hardware/stack_habits.csv). Degrees,
micro-batch and recompute that a row leaves blank are inferred in row_layout. What was measured is
never read: `RunInputs` does not hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from app.accuracy.row_words import (
    ALIKE,
    BALANCES,
    BEST,
    DISPATCHERS,
    DTYPES,
    FLASH2,
    GRAPHS,
    LOSSES,
    OLD_KERNELS,
    OPTIMIZER_NAMES,
    POLICY,
    PRECISION_NAMES,
    SHARDING_NAMES,
    UNFUSED,
    month_of,
    network_bytes_per_s,
    network_fabric,
    offload_target,
    recompute_mode,
    recompute_share,
    word,
)
from app.scenario.model import custom_fields
from core.errors import RuncastError
from core.layout.layouts import RECOMPUTE
from core.layout.precision import PRECISIONS
from core.layout.routing import MAX_VIO_OF_BIAS, natural_load
from core.machine.accelerator import Accelerator
from core.model.presets import PRESETS
from core.model.transformer import Transformer
from core.numeric import as_float
from core.scenario import Scenario
from core.time.software import decimal_year, is_since
from hardware.efficiency import GENERIC, Stack, stack_of, stacks
from hardware.facts import accelerator, fabric
from hardware.habits.adapters import targets_of
from hardware.habits.built_on import built_on
from hardware.habits.remat import offloads, repeated
from hardware.measured import RunInputs
from hardware.measured_cells import PACKED
from hardware.measured_model import ModelFacts
from hardware.model_facts import balances_by_bias
from hardware.stack_support import habit

# FlashAttention (arXiv:2205.14135) was published in May 2022.
NEW_KERNELS = decimal_year("2022-06")
NATIVE_KERNELS = decimal_year("2026-01")  # PyTorch has Hopper and Blackwell kernels from here on
CHUNKED_TUNING = decimal_year("2025-01")  # software for fine-tuning computes the loss in pieces
# Tokens of an example where packed fine-tuning data are not described: question answering and
# instructions, SQuAD in NeMo and Megatron-Bridge. Attention is small anywhere below a thousand.
PACKED_TOKENS = 200.0
TASKS = ("pretrain", "sft", "lora", "qlora")
ADAPTERS = ("lora", "qlora")
LORA_RANK = 16.0  # assumed, with adapters on every matrix, where a row does not say
IN_PYTORCH = ("torch", "composer", "transformers")
ON, OFF = "1", "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRun:
    """The scenario of one row, and what is known about the row besides."""

    scenario: Scenario  # its layout: what the row gives
    facts: ModelFacts
    chip: Accelerator
    stack: Stack  # of the scenario
    known_stack: bool  # whether the row names a stack that has a profile
    network_known: bool
    precision_known: bool
    batch_known: bool
    shard_group: float  # ranks that share one copy; NaN where the row does not say


def scenario_of_row(inputs: RunInputs, i: int, models: Mapping[str, ModelFacts]) -> PublishedRun:
    """Return the scenario of a row; raise RuncastError where no scenario can say it."""
    key = str(inputs.model_key[i])
    if key not in models:
        raise RuncastError(f"Model {key!r} is not in the models file.")
    chip = accelerator(str(inputs.accelerator[i]))
    known, stack = _stack(str(inputs.framework[i]))
    date = month_of(str(inputs.software_date[i]) or str(inputs.source_date[i]))
    per_node = int(_given(inputs.gpus_per_node[i], chip.gpus_per_node))
    domain = int(_given(inputs.nvlink_domain[i], chip.scale_up_domain))
    network, network_known = _network(str(inputs.network[i]), chip, per_node)
    model = models[key].transformer
    row = _Row(
        inputs=inputs, i=i, model=model, stack=stack, year=decimal_year(date),
        in_rack=domain > per_node,
    )  # fmt: skip
    values = (
        _model(key, model)
        | network
        | _batch(inputs, i)
        | _software(row)
        | _training(row)
        | _experts(row)
        | {
            "gpu": (chip.name,),
            "num_gpus": (int(inputs.num_gpus[i]),),
            "gpus_per_node": per_node,
            "scale_up_domain": domain,
            "stack": stack.software or stack.name,
            "software_date": date,
        }
    )
    return PublishedRun(
        scenario=Scenario.model_validate(values),
        facts=models[key],
        chip=chip,
        stack=stack,
        known_stack=known,
        network_known=network_known,
        precision_known=inputs.precision[i] not in ("", "unknown"),
        batch_known=not np.isnan(inputs.global_batch[i]),
        shard_group=float(inputs.fsdp_degree[i]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row with what its cells are read by."""

    inputs: RunInputs
    i: int
    model: Transformer
    stack: Stack
    year: float
    in_rack: bool  # the fast links of its machine join several nodes

    def cell(self, column: str) -> str:
        """The text of a cell."""
        return str(getattr(self.inputs, column)[self.i])

    def number(self, column: str) -> float:
        """The number of a cell; NaN where blank."""
        return float(getattr(self.inputs, column)[self.i])

    def habit(self, quantity: str) -> str:
        """The habit of the stack at the date of the run."""
        return habit(self.stack, quantity, self.year)

    def flag(self, column: str, usual: bool) -> bool:
        """A cell of 0 or 1, else what is usual."""
        switch = self.number(column)
        return usual if np.isnan(switch) else bool(switch)

    @property
    def tunes(self) -> bool:
        """Whether a trained model is trained on."""
        return self.cell("task") in TASKS[1:]


@lru_cache(maxsize=4096)
def _model(key: str, model: Transformer) -> dict[str, Any]:
    """The preset with these dimensions, or the dimensions."""
    same = [name for name, preset in PRESETS.items() if preset.transformer == model]
    if not same:
        return custom_fields(model)
    return {"model": key if key in same else same[0]}


def _stack(name: str) -> tuple[bool, Stack]:
    """Whether a framework has a profile, and the stack that it is, is built on, or, of software
    that nothing is known of, no particular one."""
    if known := stack_of(name):
        return True, known
    return False, built_on(name) or stacks()[GENERIC]


def _network(text: str, chip: Accelerator, per_node: int) -> tuple[dict[str, Any], bool]:
    """The fields of the network, and whether the row states its rate."""
    stated = network_bytes_per_s(text, per_node)
    assumed = fabric("ethernet_assumed", "instance_bytes_per_s") / per_node
    rate = stated or chip.scale_out_bytes_per_s or assumed
    fields = {"network_gbit_per_gpu": rate * 8e-9, "network_kind": network_fabric(text)}
    return fields, stated is not None


def _batch(inputs: RunInputs, i: int) -> dict[str, Any]:
    """Sequence, batch and the degrees that the row gives."""
    degrees = {"tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "etp": "etp",
               "virtual_stages": "vpp", "micro_batch_size": "micro_batch",
               "global_batch_size": "global_batch"}  # fmt: skip
    cells = {field: float(getattr(inputs, column)[i]) for field, column in degrees.items()}
    return {"seq_len": max(int(inputs.seq_len[i]), 16)} | {
        field: max(round(cell), 1) for field, cell in cells.items() if not np.isnan(cell)
    }


def _software(row: _Row) -> dict[str, Any]:
    """Kernels, compiler and overlap."""
    loss = _loss(row)
    compiled = _compiled(row)
    if not loss and compiled and row.habit("compiled_loss") == ON:
        loss = "compiled"
    graphs = GRAPHS.get(row.cell("cuda_graphs"), 0.0)
    overlaps = bool(is_since(row.year, row.stack.gradient_overlap_since))
    overlaps = overlaps and row.habit("gradient_overlap") != OFF
    return {
        "attention": _attention(row),
        "compile": compiled,
        "loss_kernel": loss or "parallel",
        "cuda_graphs": graphs == 1,
        "cuda_graph_parts": 0 < graphs < 1,
        "norm_kernels": word(row.cell("elementwise_kernel"), ("eager", "fused"), ""),
        "async_tp": _switch(
            row.flag("tp_overlap", bool(is_since(row.year, row.stack.async_tp_since)))
        ),
        "gradient_overlap": _switch(row.flag("grad_overlap", overlaps)),
        "param_overlap": _switch(row.flag("param_overlap", row.habit("weights_overlap") != OFF)),
        # Sequence parallelism (arXiv:2205.05198) came with selective recompute.
        "sequence_parallel": True if row.cell("recompute") == "selective" else None,
    }


def _switch(on: bool) -> str:
    return "on" if on else "off"


def _attention(row: _Row) -> str:
    kernel = word(
        row.cell("attention_kernel"), (*UNFUSED, *FLASH2, *BEST), row.habit("attention_kernel")
    )
    if kernel in UNFUSED or (kernel not in (*FLASH2, *BEST) and row.year < NEW_KERNELS):
        return "unfused"
    older = kernel in FLASH2 or (kernel not in BEST and row.stack.attention == "flash2")
    old = kernel in OLD_KERNELS or (older and row.year < NATIVE_KERNELS)
    return "flash2" if old else "flash3"


def _loss(row: _Row) -> str:
    loss = word(row.cell("loss_kernel"), LOSSES, row.habit("loss_kernel"))
    if row.stack.name == GENERIC and not loss and row.year >= CHUNKED_TUNING:
        return "chunked" if row.stack.chunks_loss(pretrains=not row.tunes) else ""
    return loss


def _compiled(row: _Row) -> bool:
    """Whether the run was compiled: as the row states, else if PyTorch ran 8- or 4-bit matmuls.

    Without a compiler, quantising costs more than such matmuls save
    (pytorch/ao: torchao/float8/README.md).
    """
    stated = row.cell("compile")
    narrow = PRECISIONS[_precision(row)].matmul_bits < 16
    return stated in ("yes", "thunder") or (
        stated != "no" and narrow and row.stack.family in IN_PYTORCH
    )


def _precision(row: _Row) -> str:
    written = row.cell("precision")
    name = PRECISION_NAMES.get(written, written).replace("-", "_")
    return name if name in PRECISIONS else "bf16"


def _training(row: _Row) -> dict[str, Any]:
    """Task, number formats, optimizer, sharding and offload."""
    task, offload = row.cell("task"), row.cell("offload")
    states = row.cell("optimizer")
    rank = row.number("lora_rank")
    detail = row.cell("recompute_detail")
    policy = detail.removeprefix(POLICY).strip() if detail.startswith(POLICY) else ""
    sharding = SHARDING_NAMES.get(row.cell("dp_sharding"))
    if sharding == "fsdp2" and row.stack.dp_sharding == "zero3":
        sharding = "zero3"  # a stack on DeepSpeed means its own by zero3/fsdp
    experts = bool(row.model.num_experts)
    recompute = recompute_mode(row.cell("recompute"), detail, experts=experts)
    return {
        "sharding": (sharding,) if sharding else (),
        "recompute": (recompute,) if recompute in RECOMPUTE else (),
        "task": task if task in TASKS else "pretrain",
        "precision": _precision(row),
        "optimizer": OPTIMIZER_NAMES.get(states, "adamw"),
        "weight_dtype": word(row.cell("param_dtype"), DTYPES, _tuned_weights(row)),
        "gradient_dtype": _gradients(row),
        "lora_rank": int(LORA_RANK if np.isnan(rank) else rank),
        "lora_targets": targets_of(row.stack, row.year, row.cell("lora_targets")),
        "offload_optimizer": offload_target(offload, "optimizer"),
        "offload_params": offload_target(offload, "param"),
        "offload_activations": "activation" in offload or offloads(policy),
        "remat_policy": policy if repeated(policy) else "",
        "recompute_share": recompute_share(detail),
        **_packing(row),
    }


def _tuned_weights(row: _Row) -> str:
    """The type of weights that are tuned whole on each device, as the stack keeps them; '' where no
    habit says, where they are sharded, and where a model is made anew."""
    sharding = SHARDING_NAMES.get(row.cell("dp_sharding"), row.stack.dp_sharding)
    return row.habit("tuned_weights") if sharding == "ddp" and row.cell("task") == "sft" else ""


def _gradients(row: _Row) -> str:
    """The type of gradients: as the row states, else '' for that of the stack.

    Stacks that accumulate gradients in fp32 do so for bf16; fp16 uses loss scaling instead.
    """
    stated, usual = row.cell("grad_dtype"), row.stack.gradient_dtype
    if stated in DTYPES and usual != "bf16_fp32":
        return stated
    # In JAX a gradient has the type of its parameter (docs.jax.dev: custom derivatives).
    if row.stack.family == "xla" and row.cell("param_dtype") == "bf16":
        return "bf16"
    in_fp32 = usual in ("fp32", "bf16_fp32")
    return "bf16" if in_fp32 and row.cell("precision") == "fp16" else ""


def _packing(row: _Row) -> dict[str, Any]:
    """The mean length of examples that share a sequence."""
    if row.cell("packing") != PACKED or not row.tunes:
        return {}
    num_tokens = row.number("avg_tokens")
    return {"tokens_per_example": PACKED_TOKENS if np.isnan(num_tokens) else num_tokens}


def _load_of_bias(row: _Row) -> float | None:
    """The load of the busiest rank where a bias balances the experts, which no option says of a
    model whose dimensions are given; None for other models."""
    if not balances_by_bias(row.cell("model_key").removesuffix("-671b").removesuffix("-mtp")):
        return None
    return as_float(
        natural_load(
            num_experts=row.model.num_experts,
            experts_per_token=row.model.experts_per_token,
            ep=_given(row.number("ep"), 1.0),
            max_vio=MAX_VIO_OF_BIAS,
        )
    )


def _experts(row: _Row) -> dict[str, Any]:
    """Dispatcher, balance and capacity of experts; empty without."""
    model = row.model
    if not model.num_experts:
        return {}
    sends = word(row.cell("moe_dispatcher"), DISPATCHERS, row.habit("moe_dispatcher"))
    if row.in_rack and not sends:
        sends = row.habit("moe_dispatcher_in_racks")
    factor = row.number("token_drop")
    capacity = float(row.habit("token_drop") == ON) if np.isnan(factor) else factor
    balance = word(row.cell("router_balance"), BALANCES, row.habit("router_balance"))
    imbalance = 1.0 if balance == "forced" else None
    if balance == "natural" or not balance:
        imbalance = _load_of_bias(row)
    return {
        "moe_dispatcher": DISPATCHERS.get(sends, "per_expert"),
        "capacity_factor": capacity or None,
        "expert_imbalance": imbalance,
        "filler_data": balance == ALIKE,
        "moe_overlap": row.flag("moe_overlap", False),
    }


def _given(value: float, default: float) -> float:
    """The value, or the default where the run does not state one."""
    return default if np.isnan(value) else float(value)
