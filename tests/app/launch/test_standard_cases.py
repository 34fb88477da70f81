"""Standard jobs, each with a stack: its file is written, forecasts the step of its plan, has every
flag of the habits that the forecast assumes, and what earlier files lacked."""

from __future__ import annotations

import json
import math
from urllib.parse import urlencode

import pytest

from app.command.given import Given
from app.launch.export import made
from hardware.habits.flags import rows_of
from hardware.stack_support import supports
from runners.recipes import stack_rules
from tests.runners.recipes.test_recipes_flags import agrees, read_back

JOB = {"num_tokens": "1e12", "seq_len": 8192, "global_batch_size": 1024, "gpu": "h100"}
TUNE = {"num_tokens": "1e7", "seq_len": 2048, "global_batch_size": 16, "num_gpus": 1}
DEEPSEEK = {"model": "deepseek-v3", "num_gpus": 2048, "seq_len": 4096, "num_tokens": "14.8e12",
            "global_batch_size": 15360, "precision": "fp8"}  # fmt: skip
LONG = {"model": "llama3.1-8b", "num_gpus": 64, "seq_len": 131072, "global_batch_size": 32}
CASES = {
    "8B on 64": ("torchtitan", {"model": "llama3.1-8b", "num_gpus": 64}),
    "70B on 64": ("megatron-lm", {"model": "llama3.1-70b", "num_gpus": 64}),
    "405B on 16384": (
        "megatron-lm",
        {"model": "llama3.1-405b", "num_gpus": 16384, "global_batch_size": 2048},
    ),
    "Mixtral on 64": ("megatron-lm", {"model": "mixtral-8x7b", "num_gpus": 64}),
    "DeepSeek-V3 on 2048": ("megatron-lm", DEEPSEEK),
    "GPT-OSS-120B on 64": ("torchtitan", {"model": "gpt-oss-120b", "num_gpus": 64}),
    "Qwen3-235B on 256": ("megatron-lm", {"model": "qwen3-235b-a22b", "num_gpus": 256}),
    "8B at 128k on 64": ("torchtitan", LONG),
    "8B at 128k on 64, Megatron": ("megatron-lm", LONG),
    "QLoRA 70B on one": ("torchtune", {**TUNE, "model": "llama3.1-70b", "task": "qlora"}),
    "QLoRA 70B on one, Axolotl": ("axolotl", {**TUNE, "model": "llama3.1-70b", "task": "qlora"}),
    "LoRA 8B on 24 GB": (
        "torchtune",
        {**TUNE, "model": "llama3.1-8b", "task": "lora", "gpu": "rtx-4090"},
    ),
    "v6e 256": ("maxtext", {"model": "llama3.1-70b", "num_gpus": 256, "gpu": "v6e"}),
}
# Flags or keys that earlier files of a stack lacked, with what they had instead.
LACKED = {
    "megatron-lm": {"--save": "", "--rotary-base": "", "--save-interval": "", "--eval-iters": ""},
    "torchtitan": {"--checkpoint.enable": False, "--dataloader.dataset": ""},
    "torchtune": {"lr_scheduler._component_": "", "metric_logger._component_": ""},
    "axolotl": {"sample_packing": False, "attn_implementation": ""},
    "maxtext": {"packing": False, "checkpoint_period": 0},
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def exported(request):
    """The stack and what was exported of the best plan, which launchers start too."""
    stack, fields = CASES[request.param]
    link = "?" + urlencode({**JOB, **fields, "stack": stack})
    found, _ = made(
        Given(options={}, link=link), rank=None, name=None, targets=[supports()[stack].target],
        options={},
    )  # fmt: skip
    return stack, found


def test_every_habit_of_the_forecast_is_in_the_file(exported):
    stack, found = exported
    given = read_back(stack, found.texts())
    assumed = stack_rules.habits(found.job)
    for habit, choice in assumed.items():
        rows = rows_of(stack, habit, choice)
        assert rows, (habit, choice)
        for row in rows:
            known = {"checkpoint_interval": found.job.save_every}.get(habit)
            assert not row.flag or agrees(row, given, steps=known), row


def test_nothing_is_missing_that_earlier_files_lacked(exported):
    stack, found = exported
    given = read_back(stack, found.texts())
    for flag, before in LACKED[stack].items():
        assert flag in given
        if before != "":
            assert given[flag] != before
    (text,) = found.texts().values()
    head, _, rest = text.partition("# ---\n")
    assert "# TODO runcast: " in head
    assert "# TODO runcast: " not in rest
    assert "ROTARY_BASE - " not in head


def test_a_slice_of_tpus_is_one_fabric_and_no_network(exported):
    """MaxText refuses what asks for more slices than there are."""
    stack, found = exported
    if stack == "maxtext":
        given = read_back(stack, found.texts())
        sizes = {k: v for k, v in given.items() if k.startswith(("ici_", "dcn_"))}
        assert math.prod(v for k, v in sizes.items() if k.startswith("ici_")) == 256
        assert math.prod(v for k, v in sizes.items() if k.startswith("dcn_")) == 1, json.dumps(
            sizes
        )
