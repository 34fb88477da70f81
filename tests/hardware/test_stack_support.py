"""The table of what software stacks take."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from app.forecast.stack_limits import targets_of
from core.errors import FactError
from hardware.efficiency import stacks
from hardware.habits.flags import flags
from hardware.stack_support import SUPPORT_CSV, lacks, load_support, supports
from runners.recipes.registry import target, targets
from tests.made_up.plans import layout
from tests.runners.recipes.test_recipes_flags import job_for


def test_every_stack_names_a_launch_file_that_exists() -> None:
    assert {s.target for s in supports().values()} <= {
        name for name, target in targets().items() if target.kind == "stack"
    }


def test_a_stack_has_one_version_in_both_tables() -> None:
    held = {stack: {f.version for f in found} for stack, found in flags().items()}
    assert held == {stack: {s.version} for stack, s in supports().items()}
    dates = {stack: {f.source.date for f in found} for stack, found in flags().items()}
    assert dates == {stack: {s.source.date} for stack, s in supports().items()}


@pytest.mark.parametrize("stack", supports())
def test_the_offloads_of_a_stack_are_those_that_its_files_can_be_written_for(stack: str) -> None:
    """By one of its files, under one of its shardings."""
    base = job_for(stack)
    found = set()
    for optimizer, weights in product(("none", "cpu", "nvme"), repeat=2):
        for sharding in stacks()[stack].shardings:
            copies = 2 if sharding == "hsdp" else 1
            lay = layout(
                tp=1, dp_shard=16 // copies, dp_replicate=copies, sharding=sharding,
                recompute="full", num_microbatches=4, offload_optimizer=optimizer,
                offload_params=weights,
            )  # fmt: skip
            held = [replace(base.habits, reduces_in_fp32=fp32) for fp32 in (True, False)]
            asked = [replace(base, layout=lay, habits=habits) for habits in held]
            if "" in {target(name).refuses(job) for name in targets_of(stack) for job in asked}:
                found.add(f"{optimizer}/{weights}")
    assert found == supports()[stack].offloads


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("torchtune,0.6.1", "torchtuna,0.6.1", "'torchtuna' is not a stack"),
        ("torchtune,0.6.1", "torchtitan,0.6.1", "torchtitan is given twice"),
        ("src/llamafactory/hparams,2026-11", "src/llamafactory/hparams,soon", "source date 'soon'"),
        ("hiyouga/LLaMA-Factory@00577a857: src/llamafactory/hparams", "", "has no source"),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    text = SUPPORT_CSV.read_text()
    assert text.count(old) == 1
    path = tmp_path / "stack_support.csv"
    path.write_text(text.replace(old, new))
    with pytest.raises(FactError, match=reason):
        load_support(path)


def test_what_a_stack_lacks_names_those_that_have_it() -> None:
    assert lacks("torchtune", "degrees", "pp", "pipeline parallelism") == (
        "torchtune 0.6.1 has no pipeline parallelism: megatron-lm, megatron-bridge, torchtitan "
        "have."
    )
    assert lacks("litgpt", "degrees", "pp", "pipeline parallelism") == ""
