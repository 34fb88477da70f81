"""How a stack runs AdamW: hardware/stack_habits.csv, `adamw`.

`foreach`  operator by operator of all tensors, PyTorch's default: each operator makes or passes
           over as much as all weights
`fused`    one kernel; also where no row says
"""

from __future__ import annotations

from hardware.efficiency import GENERIC, Stack
from hardware.stack_support import habit

FOREACH = "foreach"


def lists_tensors(
    stack: Stack, year: float, *, optimizer: str, tunes: bool, compiled: bool
) -> bool:
    """Whether AdamW runs operator by operator. Of software that nobody names only where it tunes a
    model, and not where it compiles: bare loops that do ask for the fused kernel, too."""
    if optimizer != "adamw" or (stack.name == GENERIC and (compiled or not tunes)):
        return False
    return habit(stack, "adamw", year) == FOREACH
