"""How stacks run AdamW."""

from dataclasses import replace

import pytest

from hardware.efficiency import stacks
from hardware.habits.optimizers import factors_by_operator, lists_tensors


@pytest.mark.parametrize(
    ("stack", "year", "by_operator"),
    [
        ("trl", 2022.5, False),  # before torch 2.0 each tensor alone
        ("trl", 2024.5, True),
        ("trl", 2026.0, False),  # fused with torch 2.8
        ("ms-swift", 2024.0, True),
        ("generic", 2024.5, True),
        ("torchtitan", 2024.5, False),
        ("maxtext", 2024.5, False),
    ],
)
def test_the_trainer_of_transformers_ran_adamw_by_operators_until_torch_28(
    stack, year, by_operator
):
    found = lists_tensors(stacks()[stack], year, optimizer="adamw", tunes=True, compiled=False)
    assert found == by_operator


def test_a_compiled_step_runs_no_optimizer_by_operators():
    """Also of software that nobody names, where its machine says that it compiles."""
    unnamed = replace(stacks()["generic"], family="xla")
    of = {"optimizer": "adamw", "tunes": True, "compiled": False}
    assert not lists_tensors(unnamed, 2024.5, **of)
    assert not factors_by_operator(unnamed, 2024.5, factors=True)
    assert factors_by_operator(stacks()["generic"], 2024.5, factors=True)
    assert factors_by_operator(stacks()["trl"], 2026.5, factors=True)
    assert not factors_by_operator(stacks()["trl"], 2026.5, factors=False)


@pytest.mark.parametrize("but", [{"optimizer": "adafactor"}, {"tunes": False}, {"compiled": True}])
def test_software_that_nobody_names_does_so_only_where_it_tunes_without_a_compiler(but):
    of = {"optimizer": "adamw", "tunes": True, "compiled": False, **but}
    assert not lists_tensors(stacks()["generic"], 2024.5, **of)
