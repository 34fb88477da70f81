"""How a stack runs its optimizer: hardware/stack_habits.csv.

`adamw`      foreach: operator by operator of all tensors, PyTorch's default from torch 2.0 on; each
             makes, or passes over, as much as all weights. fused: one kernel; also where no row
             says
`adafactor`  eager: one tensor after the other, operator by operator; else as one kernel

Of software that nobody names both are habits of PyTorch, and none of graphs that a compiler makes.
"""

from __future__ import annotations

from hardware.efficiency import GENERIC, Stack
from hardware.stack_support import habit

ADAMW = ("adamw", "adamw_bf16")
FOREACH, EAGER = "foreach", "eager"
GRAPHS = ("xla", "neuron", "gaudi")  # families whose whole step is compiled


def lists_tensors(
    stack: Stack, year: float, *, optimizer: str, tunes: bool, compiled: bool
) -> bool:
    """Whether AdamW runs operator by operator. Of software that nobody names only where it tunes a
    model, and not where it compiles: bare loops that do ask for the fused kernel, too."""
    if optimizer not in ADAMW or stack.family in GRAPHS:
        return False
    if stack.name == GENERIC and (compiled or not tunes):
        return False
    return habit(stack, "adamw", year) == FOREACH


def factors_by_operator(stack: Stack, year: float, *, factors: bool) -> bool:
    """Whether an optimizer that `factors` its second moments is Adafactor operator by operator."""
    return factors and stack.family not in GRAPHS and habit(stack, "adafactor", year) == EAGER
