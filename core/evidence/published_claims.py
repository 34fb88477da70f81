"""Ways to count bytes per parameter, and the verdicts on published claims.

[R20] Rajbhandari et al., "ZeRO", SC 2020, arXiv:1910.02054, section 3.1.
[M26] Megatron Core developer guide, "Distributed Optimizer": bytes per parameter by the data
      types of weights and gradients (20, 18 and 16 without sharding).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.numeric import Numeric

Verdict = Literal["reproduced", "reproduced as a limit", "refuted", "input"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "reproduced as a limit", "refuted", "input")
Rule = Literal["equals", "fits", "input"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """One way to count the bytes per parameter that AdamW keeps in mixed precision."""

    name: str
    parameter_bytes: float
    gradient_bytes: float
    optimizer_bytes: float
    about: str
    source: str

    @property
    def total_bytes(self) -> float:
        """Bytes per parameter in total, without sharding."""
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes


ACCOUNTINGS = (
    Accounting(
        name="16 bytes",
        parameter_bytes=2, gradient_bytes=2, optimizer_bytes=12,
        about="16-bit weights and gradients; fp32 master weights, momentum and variance",
        source="Rajbhandari et al., ZeRO, arXiv:1910.02054, section 3.1",
    ),
    Accounting(
        name="16 bytes, all fp32",
        parameter_bytes=4, gradient_bytes=4, optimizer_bytes=8,
        about="fp32 weights and gradients, which are their own master copy; two moments",
        source="Megatron Core developer guide, Distributed Optimizer; PyTorch DDP and FSDP",
    ),
    Accounting(
        name="18 bytes",
        parameter_bytes=2, gradient_bytes=4, optimizer_bytes=12,
        about="16-bit weights; gradients accumulated in fp32; master weights and moments in fp32",
        source="Megatron Core developer guide, Distributed Optimizer",
    ),
    Accounting(
        name="20 bytes",
        parameter_bytes=2, gradient_bytes=2, optimizer_bytes=16,
        about="as 16 bytes, plus an fp32 copy of the gradients for the optimizer",
        source="Megatron Core developer guide, Distributed Optimizer (fp16 weights and gradients)",
    ),
)  # fmt: skip


def state_bytes(*, num_params: Numeric, bytes_per_param: Numeric) -> Numeric:
    """Bytes of one or several kinds of model state, before any sharding. [R20, section 3.1]

    >>> float(state_bytes(num_params=70e9, bytes_per_param=16.0))
    1120000000000.0
    """
    return np.multiply(num_params, bytes_per_param)
