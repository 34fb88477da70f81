"""The fields of `Workload` that the habits of a stack decide alone, of plans and of runs."""

from __future__ import annotations

from math import nan
from typing import Any

from core.layout.workload import SHARE
from core.model.transformer import Transformer, is_moe
from hardware.efficiency import Stack
from hardware.stack_support import habit

ON = "1"
# Habits of hardware/stack_habits.csv that are called as their field is.
SWITCHES = (
    "all_reduces_gradients", "broadcasts_weights", "frees_gradients", "fp32_norms",
    "fuses_gradient_sums", "gathers_by_matrix", "indexes_expert_biases", "keeps_gathered_inputs",
    "keeps_narrow_inputs", "loops_experts", "permutes_by_kernel", "reduces_as_held",
    "reduces_to_owners", "routes_by_masks", "runs_every_expert",
    "splits_expert_biases", "splits_projections", "stages_by_cost", "whole_unit_gradients",
)  # fmt: skip
# The habit of a field that is a number, and the field where the table has no row.
NUMBERS = {
    "logit_bytes": ("held_logits_bytes", nan),
    "loss_bytes": ("loss_bytes", nan),
    "loss_chunk_tokens": ("loss_chunk_tokens", nan),
    "routes_group": ("routes_group", SHARE),
}


def workload_fields(stack: Stack, year: float) -> dict[str, Any]:
    """What a stack did in that year, by name of the field."""
    found: dict[str, Any] = {name: habit(stack, name, year) == ON for name in SWITCHES}
    for field, (name, otherwise) in NUMBERS.items():
        found[field] = float(habit(stack, name, year) or otherwise)
    return found | {"worst_buffers": habit(stack, "expert_buffers", year) == "worst"}


def expert_words(stack: Stack, year: float, model: Transformer) -> list[str]:
    """What a plan says of experts that its stack does not run as grouped matmuls."""
    if not is_moe(model):
        return []
    does = workload_fields(stack, year)
    if does["runs_every_expert"] and model.experts_per_token == 1:
        return [
            f"{stack.name} multiplies every token by all {model.num_experts} experts of a layer, "
            "though a token takes one; a stack with grouped experts takes a fraction of that time."
        ]
    if does["loops_experts"]:
        return [
            f"{stack.name} of this date runs the {model.num_experts} experts of a layer one after "
            "another; software_date=2026-01 or later runs them together (transformers 5)."
        ]
    return []
