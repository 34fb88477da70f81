"""How a stack applies adapters, norms and rotation: hardware/stack_habits.csv.

`adapter_passes`   the kind of core/model/adapter_passes.py with a 16-bit base
`qlora_passes`     with a packed base; blank: as `adapter_passes`
`lora_targets`     the matrices with adapters; blank: all
`adapter_dropout`  1: the adapters' input is dropped out by default
`joined_adapters`  1: matrices with the same input have one adapter
`chunks_loss_with` fused_linear: the loss in pieces comes with kernels for norms and rotation
`norm_kernels`     eager: norms and rotation run operator by operator unless kernels are asked for
"""

from __future__ import annotations

from typing import Any

from core.model.adapter_passes import KINDS
from hardware.efficiency import GENERIC, Stack
from hardware.stack_support import habit

ON, EAGER, FUSED = "1", "eager", "fused"
ALL, ATTENTION, QKV = TARGETS = ("all", "attention", "qkv")  # matrices with adapters
# Families that software without a name is taken for where it may run the models of transformers.
MAY_RUN_TRANSFORMERS = (GENERIC, "torch", "transformers", "deepspeed")
LINEAR_LOSS = "fused_linear"  # a loss that comes with kernels for norms and rotation


def adapter_fields(stack: Stack, task: str, year: float, *, targets: str = ALL) -> dict[str, Any]:
    """The fields of `Workload` on the passes of adapters; none without adapters."""
    if task not in ("lora", "qlora"):
        return {}
    kind = habit(stack, "adapter_passes", year)
    if task == "qlora":
        kind = habit(stack, "qlora_passes", year) or kind
    return {
        "adapter_kind": float(KINDS.index(kind or "none")),
        "adapter_dropout": habit(stack, "adapter_dropout", year) == ON,
        "joined_adapters": habit(stack, "joined_adapters", year) == ON,
        "adapters_on_mlp": targets not in (ATTENTION, QKV),
        "adapters_on_output": targets != QKV,
    }


def targets_of(stack: Stack, year: float, said: str) -> str:
    """The matrices with adapters: as the run says, else as the stack does."""
    return said if said in TARGETS else habit(stack, "lora_targets", year) or ALL


def runs_eagerly(stack: Stack, year: float, *, tunes: bool, said: str = "", loss: str = "") -> bool:
    """Whether norms and rotation run operator by operator: as the run says, else as the stack.
    Libraries for fine-tuning run the models of transformers (hardware/habits/built_on.csv), so that
    one that nobody names does, too."""
    if said in (EAGER, FUSED):
        return said == EAGER
    if loss == LINEAR_LOSS:
        return False
    if stack.name == GENERIC and not stack.software:
        return tunes and stack.family in MAY_RUN_TRANSFORMERS
    return habit(stack, "norm_kernels", year) == EAGER
