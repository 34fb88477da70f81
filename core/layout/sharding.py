"""Data-parallel strategies: a table of what each shards and gathers.

[R20] Rajbhandari et al., "ZeRO", SC 2020, arXiv:1910.02054, section 5 (stages 1-3).
[W23] Wang et al., "ZeRO++", arXiv:2306.10209, section 3.
[Z23] Zhao et al., "PyTorch FSDP", VLDB 2023, arXiv:2304.11277 (full and hybrid sharding).

[D24] deepspeedai/DeepSpeed: deepspeed/runtime/bf16_optimizer.py (`grad_acc_dtype` fp32).

Bytes per parameter under mixed precision with AdamW. ZeRO keeps 16-bit weights and gradients and 12
bytes of fp32 master weight, momentum and variance (16 in all, [R20, section 3.1]); a Megatron-style
distributed optimizer (zero1) accumulates gradients in fp32 (18 in all); a stack that accumulates
16-bit gradients into a separate fp32 buffer holds both (20 in all, [D24]). PyTorch DDP and FSDP
keep fp32 weights and gradients, which are their own master copy (16 in all); the gradient type of
FSDP is only that of the reduction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import nan

import numpy as np
from numpy.typing import NDArray

from core.numeric import Numeric


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """One row of the table."""

    name: str
    parameter_bytes: float
    gradient_bytes: float
    optimizer_bytes: float  # with AdamW: 8 of moments, and a master weight where it is separate
    shards_parameters: bool
    shards_gradients: bool
    shards_optimizer: bool
    gathered_bytes: float  # per parameter in an all-gather of weights
    reduced_bytes: float  # per parameter in a reduction of gradients
    replicates: bool = False  # shards in one group, replicates over others
    secondary_bytes: float = 0.0  # second copy of the weights, sharded inside each node


STRATEGIES = (
    Strategy(
        name="ddp", parameter_bytes=4, gradient_bytes=4, optimizer_bytes=8,
        shards_parameters=False, shards_gradients=False, shards_optimizer=False,
        gathered_bytes=0, reduced_bytes=4,
    ),
    Strategy(
        name="zero1", parameter_bytes=2, gradient_bytes=4, optimizer_bytes=12,
        shards_parameters=False, shards_gradients=False, shards_optimizer=True,
        gathered_bytes=2, reduced_bytes=4,
    ),
    Strategy(
        name="zero2", parameter_bytes=2, gradient_bytes=2, optimizer_bytes=12,
        shards_parameters=False, shards_gradients=True, shards_optimizer=True,
        gathered_bytes=2, reduced_bytes=2,
    ),
    Strategy(
        name="zero3", parameter_bytes=2, gradient_bytes=2, optimizer_bytes=12,
        shards_parameters=True, shards_gradients=True, shards_optimizer=True,
        gathered_bytes=2, reduced_bytes=2,
    ),
    Strategy(
        name="fsdp1", parameter_bytes=4, gradient_bytes=4, optimizer_bytes=8,
        shards_parameters=True, shards_gradients=True, shards_optimizer=True,
        gathered_bytes=2, reduced_bytes=4,
    ),
    Strategy(
        name="fsdp2", parameter_bytes=4, gradient_bytes=4, optimizer_bytes=8,
        shards_parameters=True, shards_gradients=True, shards_optimizer=True,
        gathered_bytes=2, reduced_bytes=4,
    ),
    Strategy(
        name="hsdp", parameter_bytes=4, gradient_bytes=4, optimizer_bytes=8,
        shards_parameters=True, shards_gradients=True, shards_optimizer=True,
        gathered_bytes=2, reduced_bytes=4, replicates=True,
    ),
    # 8-bit gathers, 4-bit gradients, a second partition of the weights inside the node [W23].
    Strategy(
        name="zeropp", parameter_bytes=2, gradient_bytes=2, optimizer_bytes=12,
        shards_parameters=True, shards_gradients=True, shards_optimizer=True,
        gathered_bytes=1, reduced_bytes=0.5, secondary_bytes=2,
    ),
)  # fmt: skip
ADAMW_STATE_BYTES = 8.0
INDEX = {s.name: i for i, s in enumerate(STRATEGIES)}
# Bytes of gradient that are held per parameter, by `Scenario.gradient_dtype`; NaN: the table's.
GRADIENT_BYTES = {"": nan, "bf16": 2.0, "fp32": 4.0, "bf16_fp32": 6.0}


def column(strategy: Numeric, quantity: str) -> NDArray[np.float64]:
    """One column of the table for strategy numbers (`INDEX`)."""
    return _values(quantity)[np.asarray(strategy, dtype=int)]


@cache
def _values(quantity: str) -> NDArray[np.float64]:
    return np.array([float(getattr(s, quantity)) for s in STRATEGIES])


def held_gradient_bytes(*, strategy: Numeric, gradient_bytes: Numeric = nan) -> NDArray[np.float64]:
    """Bytes of gradient per parameter before sharding; NaN: the default of the strategy. The
    gradient of an fp32 weight stays fp32 whatever it is reduced in. [Z23, section 4.4]"""
    habit = column(strategy, "gradient_bytes")
    given = ~np.isnan(gradient_bytes) & (column(strategy, "parameter_bytes") < 4)
    return np.where(given, gradient_bytes, habit)


def may_sum_whole(strategy: Numeric) -> NDArray[np.bool_]:
    """Whether a strategy can leave gradients whole until the last micro-batch: PyTorch's FSDP
    (pytorch/pytorch pull request 126166); ZeRO-2 and 3 cannot (huggingface/accelerate:
    Accelerator.no_sync)."""
    own = column(strategy, "parameter_bytes") == 4
    return own & (column(strategy, "shards_parameters") > 0)


def whole_gradient_bytes(
    *, strategy: Numeric, gradient_bytes: Numeric, weight_bytes: Numeric
) -> NDArray[np.float64]:
    """Bytes per parameter of gradients that are summed before they are reduced. FSDP2 sums in the
    type of the reduction, FSDP1 in that of its 16-bit gradients (pytorch/pytorch:
    torch/distributed/fsdp/_fully_shard/_fsdp_param.py, to_accumulated_grad_if_needed;
    torch/distributed/fsdp/_runtime_utils.py, _post_backward_hook). `weight_bytes`: of a weight that
    is its own master copy, whose type the reduction has unless one is given."""
    given = np.where(np.isnan(gradient_bytes), weight_bytes, gradient_bytes)
    return np.where(np.asarray(strategy) == INDEX["fsdp1"], 2.0, np.minimum(given, 4.0))


def reduced_gradient_bytes(
    *, strategy: Numeric, gradient_bytes: Numeric = nan, as_held: Numeric = False
) -> Numeric:
    """Bytes per parameter in a reduction of gradients: those of the accumulator where there is one.
    DDP reduces what it holds: gradients of fp32 weights, or `as_held` those of 16-bit weights in
    the type that is given. Gradients that are quantised for it [W23] stay so."""
    habit = column(strategy, "reduced_bytes")
    shards = column(strategy, "shards_optimizer") > 0
    given = ~np.isnan(gradient_bytes) & (shards | np.asarray(as_held, dtype=bool)) & (habit >= 2)
    return np.where(given, np.minimum(gradient_bytes, 4.0), habit)


def model_state_bytes_per_param(
    *, strategy: Numeric, shards: Numeric, gradient_bytes: Numeric = nan
) -> Numeric:
    """Bytes of weights, gradients and optimizer per parameter and GPU. [R20, figure 1]

    >>> float(model_state_bytes_per_param(strategy=INDEX["zero3"], shards=64.0))
    0.25
    """
    parts = (("parameter", "parameters"), ("gradient", "gradients"), ("optimizer", "optimizer"))
    total: Numeric = 0.0
    for bytes_of, what in parts:
        sharded = column(strategy, f"shards_{what}") > 0
        held: Numeric = column(strategy, f"{bytes_of}_bytes")
        if what == "gradients":
            held = held_gradient_bytes(strategy=strategy, gradient_bytes=gradient_bytes)
        total = total + held / np.where(sharded, shards, 1.0)
    return total
