"""A plan's JSON is enough to compute it again; what was changed in it is named."""

from __future__ import annotations

import random
import re
import socket
from functools import cache
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.forecast import calibration_files, calibrations
from app.forecast.answer import answer
from app.forecast.resolve import resolve_strict
from app.plan.as_json import plan_json
from app.recompute import file as recompute_file
from app.recompute import words as recompute_words
from app.recompute.file import PlanFile, parse_plan_file
from app.recompute.recompute import recomputed, recomputed_json
from core.errors import RuncastError, ScenarioError
from core.model.presets import PRESETS
from core.scenario import Scenario
from hardware import facts
from hardware.efficiency import stacks
from hardware.stack_support import support_of
from tests.made_up.results import machine, result
from tests.support.documented_keys import paths

ASKED = {
    "model": "llama3.1-8b", "num_tokens": "1e11", "global_batch_size": "256",
    "gpu": "H100-80GB-SXM", "num_gpus": "16",
}  # fmt: skip
# Each is something that a plan's numbers depend on in its own way.
SCENARIOS = {
    "dense, two GPUs, priced and unpriced": {"gpu": "H100-80GB-SXM,TPU-v4", "num_gpus": "64"},
    "experts, expert and pipeline parallel": {
        "model": "mixtral-8x7b", "num_gpus": "64", "ep": "8", "pp": "2", "expert_imbalance": "1.3",
    },
    "QLoRA on examples": {
        "task": "qlora", "num_gpus": "2", "num_examples": "52000", "tokens_per_example": "700",
        "epochs": "3", "packing_efficiency": "0.9", "seq_len": "2048", "double_quantisation": "1",
    },
    "a measurement of the user": {
        "anchor_tokens_per_s_per_gpu": "9000", "anchor_gpu": "H100-80GB-SXM",
        "anchor_num_gpus": "16", "anchor_layout": "tp=1,pp=1,sharding=fsdp2",
    },
    "a custom accelerator, power cap, SHARP": {
        "gpu": "custom", "custom_tflop_per_s": "400", "custom_memory_gib": "64",
        "custom_memory_gb_per_s": "2000", "custom_scale_up_gb_per_s": "300",
        "custom_scale_out_gbit_per_s": "200", "custom_usd_per_gpu_hour": "1.5",
        "network_reduction": "1",
    },
    "a capped device on a measured network": {
        "power_cap_watts": "500", "network_gbit_per_gpu": "150", "precision": "fp8",
    },
    "offload and muon": {"offload_optimizer": "cpu", "optimizer": "muon", "sharding": "zero2"},
    "hybrid state space": {"model": "nemotron-h-8b", "stack": "megatron-lm"},
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path))
    calibrations._of_id.cache_clear()


def written(top=6, **fields):
    """The bytes of `runcast plan --json`."""
    scenario = resolve_strict(Scenario.parse({**ASKED, **fields}))
    found = plan_json(scenario, answer(scenario, top=top))
    return orjson.dumps(found, option=orjson.OPT_SERIALIZE_NUMPY)


@cache
def plain():
    """One file that tests change."""
    return written(top=2)


def again(content):
    return recomputed(parse_plan_file(content))


def tampered(change):
    """What becomes of a file in which something was changed."""
    document = orjson.loads(plain())
    change(document)
    return again(orjson.dumps(document))


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_number_comes_out_again(name):
    found = again(written(**SCENARIOS[name]))
    assert found.plans
    assert [d for p in found.plans for d in p.differs] == []
    assert found.shared == ()
    assert found.is_same
    assert all(p.num_numbers > 35 and p.largest < 1e-9 for p in found.plans)


def test_a_measured_machine_comes_out_again_from_its_factors():
    name = calibration_files.keep(result(machine(matmul=0.8, elementwise=1.3)))
    content = written(calibration=name)
    calibration_files.remove(name)
    calibrations._of_id.cache_clear()
    found = again(content)
    assert found.is_same
    document = orjson.loads(content)
    document["inputs"]["calibrations"][0]["factors"]["matmul"] *= 1.01
    first = again(orjson.dumps(document)).plans[0].differs[0]
    assert first.term == "inputs.cluster.ceiling"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_random_scenarios_come_out_again(seed):
    draw = random.Random(seed)
    known = list(facts.accelerators())
    fields = {
        "model": draw.choice(list(PRESETS)),
        "gpu": ",".join(draw.sample(known, 3)),
        "num_gpus": str(draw.choice([8, 16, 64, 96, 512])),
        "seq_len": str(draw.choice([2048, 4096, 32768])),
        "global_batch_size": str(draw.choice([64, 192, 1024])),
        "stack": draw.choice(list(stacks())),
        "task": draw.choice(["pretrain", "sft", "lora"]),
        "optimizer": draw.choice(["adamw", "adamw_8bit", "adafactor", "sgd"]),
        "compile": draw.choice("01"),
        "host_slowdown": str(draw.choice([1.0, 1.7])),
    }
    support = support_of(fields["stack"])
    if support and support.tasks and fields["task"] not in support.tasks:
        fields["task"] = min(support.tasks)
    found = again(written(**fields))
    assert found.is_same, [d for p in found.plans for d in p.differs[:3]]


def test_neither_prices_nor_a_store_nor_a_network_are_read(tmp_path, monkeypatch):
    content = plain()

    def refused(*_args, **_kwargs):
        raise AssertionError("recompute reads nothing but the file")

    for name in ("pricing.offers.snapshot", "pricing.offers.installed_id"):
        monkeypatch.setattr(name, refused)
    monkeypatch.setattr("pricing.store.opening.open_store", refused)
    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setenv("RUNCAST_DATA_DIR", str(tmp_path / "is not there"))
    assert again(content).is_same


def replaced(*keys, by):
    """A change that multiplies one number of the document."""

    def change(document):
        inner = document
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] *= by

    return change


@pytest.mark.parametrize(
    ("change", "term"),
    [
        (replaced("plans", 0, "price", "usd_per_hour", by=1.01), "usd"),
        (replaced("plans", 0, "usd", by=0.9), "usd"),
        (replaced("plans", 0, "usd_p90", by=0.9), "usd_p90"),
        (replaced("plans", 0, "step_s", "matmul", by=1.001), "step_s.matmul"),
        (replaced("plans", 0, "wall_clock_hours", by=0.99), "wall_clock_hours"),
        (replaced("plans", 0, "memory_bytes", "activations", by=1.1), "memory_bytes.activations"),
        (replaced("plans", 0, "layout", "num_microbatches", by=2), "step_s.matmul"),
        (replaced("plans", 0, "inputs", "variance_left", by=0.5), "tokens_per_s_p10"),
        (
            replaced("plans", 0, "inputs", "cluster", "memory_bytes_per_s", by=2),
            "inputs.cluster.memory_bytes_per_s",
        ),
        (
            replaced("inputs", "accelerators", 0, "facts", "bf16_flops_per_s", "value", by=2),
            "inputs.cluster.peak_flops_per_s",
        ),
        (replaced("inputs", "efficiency", "matmul", by=1.01), "step_s.matmul"),
        (replaced("inputs", "model", "dims", "hidden_size", by=2), "step_s.matmul"),
    ],
)
def test_what_was_changed_is_the_first_term_that_differs(change, term):
    found = tampered(change)
    assert not found.is_same
    assert found.plans[0].differs[0].term == term


@pytest.mark.parametrize(
    ("change", "term"),
    [
        (replaced("scenario", "seq_len", by=2), "inputs.workload.seq_len"),
        (replaced("scenario", "num_tokens", by=2), "inputs.tokens"),
        (replaced("inputs", "tokens", by=2), "inputs.tokens"),
        (replaced("inputs", "workload", "host_slowdown", by=2), "inputs.workload.host_slowdown"),
    ],
)
def test_a_scenario_that_says_otherwise_than_the_inputs_is_named(change, term):
    found = tampered(change)
    assert not found.is_same
    assert found.shared[0].term == term


def test_other_tables_are_a_note_and_no_difference(monkeypatch):
    monkeypatch.setattr(
        "app.recompute.recompute.made_with", lambda: {"tables": "other", "code": "other"}
    )
    found = again(plain())
    assert found.is_same
    assert found.notes[:1] == (f"Made with other code of version {found.version}.",)
    assert "other tables" in found.notes[1]


def set_to(*keys, value):
    def change(document):
        inner = document
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (set_to("inputs", "workload", "seq_len", value="8k"), "inputs.workload.seq_len is '8k'"),
        (set_to("inputs", "workload", "seq_len", value=1e300), "not a number up to 1e30"),
        (set_to("plans", 0, "layout", "tp", value=0), "plans[0].layout.tp is '0'"),
        (set_to("plans", 0, "layout", "tp", value=2**63), "a whole number above 0"),
        (set_to("plans", 0, "layout", "sharding", value="fsdp9"), "not one of ddp"),
        (set_to("plans", 0, "accelerator", value="A100"), "does not describe 'A100'"),
        (set_to("plans", value={}), "plans is '{}', not a list"),
        (set_to("plans", 0, "inputs", value=None), "plans[0].inputs is 'None', not an object"),
        (set_to("inputs", "efficiency", value={}), "has no inputs.efficiency.matmul"),
        (set_to("inputs", "stack", "gradient_dtype", value="fp7"), "bf16, fp32 or bf16_fp32"),
        (set_to("inputs", "accelerators", 0, "facts", value={}), "lacks numbers"),
        (set_to("scenario", "seq_len", value=-1), "seq_len="),
        (
            set_to("plans", 0, "inputs", "cluster", "peak_flops_per_s", value=True),
            "is 'True', not a",
        ),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_one_sentence(change, says):
    with pytest.raises(RuncastError) as e:
        tampered(change)
    assert says in str(e.value)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"null", b'{"inputs": 1}', b"[" * 100_000, b'{"a": NaN}', b"\xff\xfe",
     b'{"schema_version": 1, "plans": []}'],
)  # fmt: skip
def test_what_is_no_plan_file_is_refused(content):
    with pytest.raises(ScenarioError, match="plan file"):
        parse_plan_file(content)


numbers = st.one_of(
    st.none(), st.booleans(), st.text(max_size=5), st.floats(allow_nan=False),
    st.sampled_from([0, -1, 1, 1e30, -1e30, 1e-300, 0.0]), st.just([]), st.just({}),
)  # fmt: skip


@given(st.data())
def test_any_value_anywhere_is_a_difference_or_a_sentence(data):
    """Nothing but our own errors, whatever stands in one place of the file."""
    document = orjson.loads(plain())
    inner, key = document, data.draw(st.sampled_from(["scenario", "inputs", "plans"]))
    while isinstance(inner[key], dict | list) and inner[key] and data.draw(st.booleans()):
        inner = inner[key]
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
    inner[key] = data.draw(numbers)
    try:
        found = again(orjson.dumps(document))
    except RuncastError as e:
        said = str(e)
    else:
        said = next(recompute_words.sentences(found, most=3))
    assert said
    assert "\n" not in said


def test_too_large_a_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(recompute_file, "MAX_BYTES", 100)
    path = tmp_path / "plan.json"
    path.write_bytes(plain())
    with pytest.raises(ScenarioError, match="larger than"):
        recompute_file.read_plan_file(path)


def test_the_command_says_it_and_its_status(tmp_path, run):
    path = tmp_path / "plan.json"
    path.write_bytes(plain())
    status, out, err = run("recompute", path)
    assert (status, err) == (0, "")
    assert out.startswith("The same: 2 plans, ")
    document = orjson.loads(plain())
    document["plans"][1]["mfu"] = 0.99
    path.write_bytes(orjson.dumps(document))
    status, out, _ = run("recompute", path)
    assert status == 1
    assert "Different: 1 of 2 plans" in out
    assert "first in mfu, 0.99 in the file" in out
    status, out, _ = run("recompute", path, "--json")
    found = orjson.loads(out)
    assert (status, found["same"], found["plans"][0]["same"]) == (1, False, True)
    assert [d["term"] for d in found["plans"][1]["differs"]] == ["mfu"]
    path.unlink()
    status, out, err = run("recompute", path)
    assert (status, out, err.count("\n")) == (2, "", 1)


def test_a_file_without_plans_is_the_same():
    """That nothing fits is an answer, too."""
    document = orjson.loads(plain())
    document["plans"] = []
    found = again(orjson.dumps(document))
    assert found.is_same
    assert isinstance(parse_plan_file(plain()), PlanFile)


def test_a_file_from_when_graphs_were_a_flag_is_read():
    document = orjson.loads(plain())
    document["inputs"]["workload"]["cuda_graphs"] = False
    assert again(orjson.dumps(document)).is_same


def test_every_key_that_it_prints_is_documented():
    document = (Path(__file__).parents[3] / "docs/reproducibility.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `([^`]+)` \|", document, re.MULTILINE))
    found = recomputed_json(tampered(replaced("scenario", "seq_len", by=2)))
    below = {f"shared[].{k}" for k in ("term", "written", "found", "relative")}
    printed = {p for p in paths(found) if not p.startswith("plans[].differs[].")}
    assert printed | below == documented
