"""The command line: what it prints, where, and with which exit status."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from app import cli
from app.accuracy.read_columns import columns_table
from app.command.given import TABLE, option_of
from app.document import format as fmt
from app.document.blocks import Paragraph
from app.scenario.age import installed
from core.errors import RunsError
from core.scenario import Scenario
from pricing.offers import Snapshot
from tests.made_up import plans as made_up
from tests.support import documented_keys

ROOT = Path(__file__).parents[2]
NEEDED = ["--tokens", "100B", "--seq-len", "8k", "--global-batch-size", "512"]
PLAN = ["plan", "--model", "llama3.1-8b", *NEEDED]
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
}


@pytest.fixture
def refused(run):
    """Run what must be refused: nothing on stdout, one line on stderr, status 2, quickly."""

    def _refused(*arguments):
        started = time.monotonic()
        status, out, err = run(*arguments)
        assert time.monotonic() - started < 5
        assert status == 2
        assert out == ""
        assert err.count("\n") == 1
        assert err.startswith("runcast: ")
        assert len(err) < 1000
        assert "Traceback" not in err
        return err.removeprefix("runcast: ").rstrip("\n")

    return _refused


@pytest.fixture
def asked(monkeypatch):
    """A made-up answer instead of a search; remembers what was asked for."""
    seen = []

    def answer(scenario, top=50):
        seen.append((scenario, top))
        return made_up.answer(made_up.plan(), num_plans=412)

    monkeypatch.setattr("app.forecast.answer.answer", answer)
    monkeypatch.setattr("app.forecast.resolve.resolve_strict", lambda scenario: scenario)
    monkeypatch.setattr("app.command.values.snapshot_ids", lambda: ["abc123"])
    monkeypatch.setattr("app.command.values.installed_id", lambda: "abc123")
    installed = Snapshot(id="abc123", offers=(), newest="2026-07-30", oldest="2025")
    monkeypatch.setattr("app.plan.as_json.price_day", lambda scenario: dt.date(2026, 7, 30))
    for module in ("app.plan.as_json", "app.plan.answer_document"):
        monkeypatch.setattr(f"{module}.snapshot", lambda named: installed)
    return seen


def test_numbers_are_read_as_people_write_them(run, asked):
    status, _, err = run(
        *["plan", "--model", "llama3.1-8b", "--tokens", "15T", "--seq-len", "8k"],
        *["--global-batch-size", "1e3", "--gpu", "B200,H100-80GB-SXM", "--num-gpus", "8, 64"],
        *["--purchase", "on_demand,spot", "--deadline-days", "30", "--budget-usd", "1.5M"],
        *["--rank-by", "time", "--tp", "8", "--sharding", "fsdp2,hsdp", "--top", "3", "--json"],
    )
    assert (status, err) == (0, "")
    assert asked == [
        (
            Scenario(
                num_tokens=15e12,
                seq_len=8192,
                global_batch_size=1000,
                gpu=("B200", "H100-80GB-SXM"),
                num_gpus=(8, 64),
                purchase=("on_demand", "spot"),
                deadline_days=30,
                budget_usd=1.5e6,
                rank_by="time",
                tp=8,
                sharding=("fsdp2", "hsdp"),
            ),
            3,
        )
    ]


def test_every_option_sets_the_field_it_is_named_after(run, asked):
    given = {
        "num_gpus": "8",
        "task": "lora",
        "lora_rank": "64",
        "lora_targets": "attention",
        "optimizer": "adamw_8bit",
        "cp": "2",
        "ep": "4",
        "etp": "1",
        "schedule": "zero_bubble",
        "virtual_stages": "2",
        "context_parallel": "ulysses",
        "offload_optimizer": "cpu",
        "offload_params": "nvme",
        "epochs": "3",
        "packing_efficiency": "0.9",
    }
    switches = ["offload_activations", "compile", "cuda_graphs", "chunked_loss"]
    typed = [t for name, value in given.items() for t in (option_of(name), value)]
    status, _, err = run(*PLAN, *typed, *(option_of(s) for s in switches), "--json")
    assert (status, err) == (0, "")
    expected = Scenario.parse({**given, **dict.fromkeys(switches, True)})
    ((scenario, _),) = asked
    assert scenario == expected
    assert {n for n in given if getattr(scenario, n) == Scenario.model_fields[n].default} == set()


def test_the_table_of_options_is_that_of_the_fields():
    for option in TABLE:
        field = Scenario.model_fields[option.field]
        assert (field.annotation in (bool, bool | None)) is (option.metavar == ""), option.field
    names = [option_of(o.field) for o in TABLE]
    assert len(set(names)) == len(names)
    assert option_of("hidden_size") is None


def test_any_field_can_be_set(run, asked):
    status, _, err = run(
        *PLAN, "--set", "attention=flash2", "--set", "reshard_after_forward = false",
        "--set", "custom_memory_gib=80", "--json",
    )  # fmt: skip
    assert (status, err) == (0, "")
    assert asked[0][0] == Scenario(
        attention="flash2", reshard_after_forward=False, custom_memory_gib=80
    )


def test_a_data_set_instead_of_tokens(run, asked):
    given = ["--seq-len", "2k", "--global-batch-size", "16", "--num-examples", "52k"]
    status, out, _ = run("plan", "--model", "llama3.1-8b", *given, "--epochs", "3")
    assert status == 0
    assert asked[0][0].num_examples == 52_000
    assert out.startswith("Llama 3.1 8B, 319M tokens: $12,400 expected")  # 52,000 x 2,048 x 3


def test_tokens_replace_the_data_set_of_a_link(run, asked):
    link = "v=1&num_examples=52000&tokens_per_example=100&epochs=3"
    assert run("plan", "--link", link, "--tokens", "1B", "--json")[0] == 0
    assert asked[0][0] == Scenario(num_tokens=1e9, epochs=3)


def test_a_scenario_is_saved_and_opened(run, asked, tmp_path):
    file = tmp_path / "run.yaml"
    typed = ["--num-gpus", "8,64", "--task", "qlora", "--set", "paged_optimizer=true"]
    status, _, err = run(*PLAN, *typed, "--save", str(file), "--json")
    assert (status, err) == (0, "")
    assert file.read_text(encoding="utf-8").startswith("v: 1\nnum_gpus: [8, 64]  # GPU counts.")
    assert run("plan", "--scenario", str(file), "--json")[0] == 0
    assert asked[1][0] == asked[0][0]
    # Options override the file, another model its model.
    again = ["--scenario", str(file), "--num-gpus", "16", "--model", "llama3.1-70b"]
    assert run("plan", *again, "--json")[0] == 0
    changed = {"num_gpus": (16,), "model": "llama3.1-70b"}
    assert asked[2][0] == asked[0][0].model_copy(update=changed)


def test_prices_of_a_file_that_are_not_here_are_said(run, asked, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("prices: fff\n")
    status, _, err = run("plan", "--scenario", str(file), "--json")
    assert status == 0
    assert err.startswith("The scenario file was made with price snapshot 'fff'")
    assert asked[0][0].prices == ""


LAYOUT = "tp=8,pp=1,cp=1,dp_shard=8,sharding=fsdp2,micro_batch_size=1,recompute=selective"
ESTIMATE = [
    *["estimate", "--model", "llama3.1-8b", "--seq-len", "8k", "--global-batch-size", "512"],
    *["--gpu", "H100-80GB-SXM", "--num-gpus", "64"],
]


def test_a_named_layout_is_asked_for(run, asked):
    status, out, err = run(*ESTIMATE, "--layout", LAYOUT, "--tokens", "1T")
    assert (status, err) == (0, "")
    assert asked[0][0] == Scenario(
        num_tokens=1e12,
        gpu=("H100-80GB-SXM",),
        num_gpus=(64,),
        tp=8,
        pp=1,
        cp=1,
        sharding=("fsdp2",),
        micro_batch_size=1,
        recompute=("selective",),
        offload_optimizer="none",  # a named layout keeps on the device what it does not speak of
        offload_params="none",
    )
    assert out.startswith("Llama 3.1 8B, 1T tokens: $12,400 expected")
    assert "Plan 1: TP8" in out


def test_a_run_of_no_said_length_is_said(run, asked):
    status, out, err = run(*ESTIMATE, "--layout", LAYOUT, "--json")
    assert (status, err) == (0, "No --tokens: time and dollars are of a run of 100B tokens.\n")
    assert json.loads(out)["verdict"] == "fits"


def test_the_json_of_an_estimate_is_documented(run, asked):
    _, out, _ = run(*ESTIMATE, "--layout", LAYOUT, "--tokens", "1T", "--json")
    found = json.loads(out)
    own = set(documented_keys.documented("`runcast estimate --json`"))
    printed = documented_keys.documented_plan_keys() | own
    # None is asked for, and the plan is of one machine, of no seller, and no choice.
    absent = (
        "inputs.calibrations[].", "plans[].network.", "plans[].at_half_network.", "plans[].supply.",
        "plans[].chosen_correction.", "plans[].nearby.", "layout_forecast.",
    )  # fmt: skip
    assert set(documented_keys.paths(found)) == {k for k in printed if not k.startswith(absent)}
    assert found["verdict_sentence"] == ""


@pytest.mark.parametrize(
    ("layout", "word"),
    [("tp=1,pp=1,sharding=ddp", "does_not_fit"), ("tp=8,pp=2,sharding=zero3", "illegal")],
)
def test_a_layout_that_cannot_be_is_an_answer(run, layout, word):
    """70B has 1.1 TB of states, and ZeRO-3 does not combine with a pipeline."""
    asked = [*ESTIMATE, "--tokens", "1T", "--model", "llama3.1-70b", "--layout", layout]
    status, out, err = run(*asked, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert (found["verdict"], found["plans"], found["num_plans"]) == (word, [], 0)
    assert found["verdict_sentence"] == found["nothing_fits"] != ""
    status, said, _ = run(*asked)
    assert status == 0
    assert said.startswith("Llama 3.1 70B, 1T tokens: No")


def test_a_real_layout_is_priced_and_kept(run):
    layout = "tp=8,pp=2,cp=1,dp_shard=4,sharding=zero1,micro_batch_size=1,recompute=full"
    given = ["--tokens", "1T", "--model", "llama3.1-70b", "--layout", layout, "--cloud", "aws"]
    status, out, err = run(*ESTIMATE, *given, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["verdict"] == "fits"
    assert found["plans"]
    for plan in found["plans"]:
        assert {k: str(plan["layout"][k]) for k in ("tp", "pp", "dp_shard", "sharding")} == {
            "tp": "8", "pp": "2", "dp_shard": "4", "sharding": "zero1"
        }  # fmt: skip
        assert plan["provider"] == "aws"
        assert plan["usd"] > 0


def test_accelerators_and_offers_are_listed(run):
    status, out, err = run("gpus")
    assert (status, err) == (0, "")
    assert re.search(r"^H100-80GB-SXM +989 ", out, re.MULTILINE)
    status, out, _ = run("gpus", "--json")
    assert status == 0
    assert "B200-180GB" in [g["name"] for g in json.loads(out)["gpus"]]
    status, out, err = run("offers", "--gpu", "h100", "--purchase", "spot", "--top", "3")
    assert (status, err) == (0, "")
    assert out.count("8 x H100-80GB-SXM") + out.count("1 x H100-80GB-SXM") == 3
    assert re.search(r"^3 of \d+ offers of price snapshot", out, re.MULTILINE)
    _, out, _ = run("offers", "--gpu", "h100", "--json")
    found = json.loads(out)
    assert found["num_offers"] == len(found["offers"]) > 3
    prices = [o["usd_per_gpu_hour"] for o in found["offers"]]
    assert prices == sorted(prices)


def test_json_is_all_that_is_printed(run, asked):
    status, out, err = run(*PLAN, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out, parse_constant=pytest.fail)
    assert found["schema_version"] == 1
    assert found["plans"][0]["usd"] == 12_412.0
    assert found["link"].endswith("prices=abc123")


def test_the_table_fits_a_hundred_columns(run, asked, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(
        "app.forecast.answer.answer",
        lambda scenario, top: made_up.answer(
            made_up.plan(),
            made_up.plan(
                rank=12,
                frontier=False,
                num_gpus=4096,
                offer=made_up.offer(
                    provider="azure",
                    instance_type="Standard_ND96isr_H100_v5_of_some_length",
                    purchase="reserved_3y",
                ),
                layout=made_up.layout(pp=16, virtual_stages=2, dp_replicate=2, sharding="hsdp"),
            ),
        ),
    )
    status, out, _ = run(*PLAN)
    assert status == 0
    lines = out.splitlines()
    first = next(n for n in lines if n.strip().startswith("*1"))
    second = next(n for n in lines if n.strip().startswith("12"))
    for cell in ("64 x H100-80GB-SXM", "TP8 DP8 fsdp2 mb1 sel.", "3.1 days", "$12,400", "41.2%"):
        assert cell in first
    for cell in ("4,096 x H100-80GB-SXM", "3 years", "TP8 PP16 (2v) DP2x8 hsdp mb1 sel."):
        assert cell in second
    assert all(len(n) <= 100 for n in lines if "localhost" not in n)


def test_the_table_says_what_stands_behind_the_first_plan(run, asked):
    _, out, _ = run(*PLAN)
    text = " ".join(out.split())
    assert "403 of 440 options priced; 37 not: no price 9, does not fit 28. Offers that" in text
    assert "From 5,300 layouts." in text
    assert "Plan 1: TP8 · DP8 (fsdp2) · micro-batch 1 · selective recompute" in text
    assert "peak memory 59.6 GiB of 79.2 GiB a GPU" in text
    assert "- Efficiency is that of published runs." in text
    assert f"http://localhost:8501/?v=1&made={installed()}&prices=abc123" in out.splitlines()[-1]


def test_no_markup_is_read_from_names(run, asked, monkeypatch):
    odd = made_up.plan(offer=made_up.offer(instance_type="[red]x[/] :smile:"))
    monkeypatch.setattr("app.forecast.answer.answer", lambda scenario, top: made_up.answer(odd))
    _, out, _ = run(*PLAN)
    assert "[red]x[/] :smile:" in out


def test_nothing_fits_is_an_answer(run, asked, monkeypatch):
    why = "Nothing fits: 12 GiB too much."
    none = made_up.answer(nothing_fits=why)
    monkeypatch.setattr("app.forecast.answer.answer", lambda scenario, top: none)
    status, out, _ = run(*PLAN)
    assert status == 0
    assert why in out
    assert "Plan 1" not in out


@pytest.mark.parametrize("address", ["", "?", "http://localhost:8501/?"])
def test_a_link_is_reopened_and_options_override_it(run, asked, address):
    link = f"{address}v=1&model=llama3.1-8b&num_tokens=1e12&num_gpus=8,64&prices=abc123"
    status, _, err = run("plan", "--link", link, "--num-gpus", "16", "--json")
    assert (status, err) == (0, "")
    assert asked[0][0] == Scenario(num_tokens=1e12, num_gpus=(16,), prices="abc123")


def test_another_model_replaces_the_custom_one_of_a_link(run, asked):
    link = "v=1&model=custom&num_layers=2&hidden_size=64&seq_len=4096"
    status, _, err = run("plan", "--link", link, "--model", "llama3.1-8b", "--json")
    assert (status, err) == (0, "")
    assert asked[0][0] == Scenario(seq_len=4096)


def test_prices_that_are_not_here_are_said(run, asked):
    status, out, err = run("plan", "--link", "v=1&prices=fff", "--json")
    assert status == 0
    assert err.startswith("The link was made with price snapshot 'fff', which is not here")
    assert json.loads(out)["price_snapshot"]["id"] == "abc123"
    assert asked[0][0].prices == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan"], "Missing --model or --config, --tokens, --seq-len, --global-batch-size"),
        (PLAN[:-2], "Missing --global-batch-size"),
        ([*PLAN, "--config", "x.json"], "Give --model or --config, not both."),
        ([*PLAN, "--tokens", "many"], "--tokens 'many'"),
        ([*PLAN, "--tokens", "nan"], "--tokens 'nan'"),
        ([*PLAN, "--tokens", "-5"], "--tokens '-5'"),
        ([*PLAN, "--tokens", "inf"], "--tokens 'inf'"),
        ([*PLAN, "--tokens", "1e999"], "--tokens '1e999'"),
        ([*PLAN, "--tokens", ""], "--tokens without a value"),
        ([*PLAN, "--gpu", " ", "--tp", ""], "--gpu, --tp without a value"),
        ([*PLAN, "--gpu", " , "], "--gpu without a value"),
        ([*PLAN, "--tokens", "9" * 100_000], "--tokens '999"),
        ([*PLAN, "--seq-len", "8.5"], "--seq-len '8.5'"),
        ([*PLAN, "--num-gpus", "1e12"], "--num-gpus"),
        ([*PLAN, "--num-gpus", "8,-1"], "--num-gpus"),
        ([*PLAN, "--num-gpus", "eight"], "--num-gpus"),
        ([*PLAN, "--purchase", "spt"], "Did you mean 'spot'?"),
        ([*PLAN, "--purchase", ""], "--purchase without a value"),
        ([*PLAN, "--rank-by", "cost"], "--rank-by 'cost' is not one of usd, time."),
        ([*PLAN, "--precision", "bf-16"], "Did you mean 'bf16'?"),
        ([*PLAN, "--budget-usd", "0"], "--budget-usd '0"),
        ([*PLAN, "--gpu", "a\nb"], "--gpu"),
        ([*PLAN, "--top", "0"], "--top '0' is not a whole number from 1 to 1000."),
        ([*PLAN, "--top", "1e9"], "--top '1e9'"),
        ([*PLAN, "--link", "nonsense"], "is no link"),
        (["plan", "--link", "v=1&seqlen=1"], "Did you mean 'seq_len'?"),
        (["plan", "--link", "v=1&num_tokens=nan"], "num_tokens"),
        (["plan", "--link", "x=" + "y" * 17_000], "longer than 16384"),
        ([*PLAN, "--num-gpu", "8"], "--num-gpus"),
        ([*PLAN, "--tokens"], "--tokens"),
        ([*PLAN, "stray"], "stray): `runcast plan --help` lists what it takes."),
        (["plan", "?v=1&tp=8"], "lists what it takes, and --link takes a link."),
        (["pln"], "pln"),
        ([*PLAN, "--set", "tp"], "--set 'tp' is no KEY=VALUE"),
        ([*PLAN, "--set", "tp="], "--set 'tp' without a value"),
        ([*PLAN, "--set", "=1"], "is no KEY=VALUE"),
        ([*PLAN, "--tp", "1", "--set", "tp=2"], "--set gives tp, which --tp gives, too."),
        ([*PLAN, "--set", "ep=1", "--set", "ep=2"], "which another --set gives, too."),
        ([*PLAN, "--set", "optmizer=sgd"], "Did you mean 'optimizer'?"),
        ([*PLAN, "--set", "attention=fast"], "--set attention='fast' is not one of"),
        ([*PLAN, "--set", "v=1"], "is not a field"),
        ([*PLAN, "--task", "finetune"], "--task 'finetune' is not one of pretrain, sft"),
        ([*PLAN, "--lora-rank", "0"], "--lora-rank"),
        ([*PLAN, "--num-examples", "5"], "Give --tokens or --num-examples, not both."),
        ([*PLAN, "--link", "v=1&tp=2", "--scenario", "x"], "Give --link or --scenario, not both."),
        (["plan", "--scenario", "missing.yaml"], "There is no file 'missing.yaml'"),
        ([*PLAN, "--save", "no/such/folder.yaml"], "Cannot write 'no/such/folder.yaml'"),
        (["estimate"], "Missing --model or --config, --layout, --seq-len"),
        (ESTIMATE, "Missing --layout: `runcast estimate --help`"),
        ([*ESTIMATE, "--layout", ""], "The layout is empty"),
        ([*ESTIMATE, "--layout", "tpp=8"], "Did you mean 'tp'?"),
        ([*ESTIMATE, "--layout", "tp=8", "--tp", "8"], "--layout and --tp both give tp."),
        ([*ESTIMATE, "--layout", "tp=8", "--set", "pp=x"], "pp"),
        ([*ESTIMATE, "--layout", "tp=48"], "over 48 GPUs (tp=48), and --num-gpus is 64."),
        ([*ESTIMATE, "--layout", "tp=8", "--num-gpus", "8,64"], "takes one number of GPUs"),
        ([*ESTIMATE, "--layout", "tp=8", "--gpu", "B200,B300"], "takes one kind of GPU (--gpu)"),
        (["estimate", "--link", "v=1&tp=8"], "takes one kind of GPU (--gpu), not 0"),
        (["offers", "--purchase", "spt"], "Did you mean 'spot'?"),
        (["offers", "--cloud", "awss"], "Did you mean 'aws'?"),
        (["offers", "--gpu", "H100-80G-SXM"], "Did you mean 'H100-80GB-SXM'?"),
        (["offers", "--gpu", ""], "--gpu without a value"),
        (["offers", "--top", "0"], "--top '0'"),
        (["gpus", "stray"], "stray"),
        (["models", "--seq-len", "0"], "--seq-len '0"),
        (["models", "--model", "a", "--config", "b"], "not both"),
        (["validate"], "Missing --runs, --models"),
        (["validate", "--runs", "x.csv"], "Missing --models"),
    ],
    ids=lambda x: " ".join(x)[-40:] if isinstance(x, list) else "",
)
def test_a_mistake_is_one_sentence_and_status_2(refused, asked, arguments, says):
    assert says in refused(*arguments)
    assert asked == []


def test_a_removed_command_names_its_replacement(refused):
    assert "`runcast plan` of that version" in refused("recompute", "plan.json", "--json")


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--model", "llama3.1-9b", "llama3.1-8b"),
        ("--gpu", "H100-80G-SXM", "Did you mean 'H100-80GB-SXM'?"),
        ("--cloud", "awss", "Did you mean 'aws'?"),
        ("--stack", "megatron-lmm", "megatron-lm"),
    ],
)
def test_an_unknown_name_is_never_guessed(refused, option, value, says):
    assert says in refused(*PLAN, option, value)


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"",
        b"\xff\xfe\x00",
        b"[1, 2]",
        b"{}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"hidden_size": ' + b"9" * 1_000_000 + b"}",
        b'{"x": "' + b"y" * 10_000_000 + b'"}',
        json.dumps({**LLAMA, "num_hidden_layers": 10**9}).encode(),
        json.dumps({**LLAMA, "hidden_size": -1}).encode(),
        json.dumps({**LLAMA, "hidden_size": "wide"}).encode(),
        json.dumps({**LLAMA, "hidden_size": float("nan")}).encode(),
        json.dumps({**LLAMA, "num_attention_heads": [32]}).encode(),
        json.dumps({k: v for k, v in LLAMA.items() if k != "vocab_size"}).encode(),
    ],
    ids=lambda c: c[:12].decode(errors="replace") + f"..{len(c)}",
)
def test_a_config_that_is_no_model(refused, tmp_path, content):
    config = tmp_path / "config.json"
    config.write_bytes(content)
    said = refused("plan", "--config", str(config), *NEEDED)
    assert refused("models", "--config", str(config), "--json") == said


def test_a_config_that_is_no_file(refused, tmp_path):
    for name in (".", "missing.json", "a\nb"):
        said = refused("models", "--config", str(tmp_path / name))
        assert said.startswith("There is no file ")
    assert refused("models", "--config", "")


def test_the_presets_are_listed(run):
    status, out, err = run("models")
    assert (status, err) == (0, "")
    assert re.search(r"^llama3\.1-8b .* 8\.03B +8\.03B ", out, re.MULTILINE)
    _, out, _ = run("models", "--json")
    found = {m["id"]: m for m in json.loads(out)["models"]}
    assert {"llama3.1-405b", "llama2-7b", "qwen2.5-7b", "mistral-7b", "gpt3-175b"} < set(found)


@pytest.mark.parametrize("seq_len", ["8192", "2k"])
def test_a_model_and_its_config_are_the_same(run, tmp_path, seq_len):
    """Llama 3.1 8B has 8,030,261,248 parameters, as its published weights do."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA))
    _, out, _ = run("models", "--model", "llama3.1-8b", "--seq-len", seq_len, "--json")
    named = json.loads(out)
    _, out, _ = run("models", "--config", str(config), "--seq-len", seq_len, "--json")
    read = json.loads(out)
    assert named["total_params"] == 8_030_261_248
    assert sum(named["params"].values()) == named["total_params"]
    for key in ("total_params", "active_params", "flops_per_token", "seq_len", "dims"):
        assert named[key] == read[key]


def test_flops_per_token_are_those_of_the_formula(run):
    """3 x forward: 2 x matrix weights with LM head, and 2 x heads x (s+1)/2 keys, each layer."""
    _, out, _ = run("models", "--model", "llama3.1-8b", "--seq-len", "8192", "--json")
    matrices = 8_030_261_248 - 128_256 * 4096 - 65 * 4096  # without embedding and norms
    scores = 32 * 2 * 2 * 4096 * 8193 / 2
    assert json.loads(out)["flops_per_token"] == pytest.approx(3 * (2 * matrices + scores))


def test_one_model_for_people(run):
    status, out, _ = run("models", "--model", "meta-llama/Llama-3.1-8B")
    assert status == 0
    assert "8,030,261,248" in out
    assert "at seq_len 8,192" in out
    assert "source: " in out


def test_a_real_plan_from_a_config(run, tmp_path):
    """Every key is documented, the parts fit, and the sentence says the same as the JSON."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA))
    asked = ["plan", "--config", str(config), *NEEDED, "--gpu", "H100-80GB-SXM", "--num-gpus", "64"]
    status, out, err = run(*asked, "--top", "3", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out, parse_constant=pytest.fail)
    assert set(documented_keys.paths(found)) <= documented_keys.documented_plan_keys(of_stacks=True)
    assert found["scenario"]["num_layers"] == 32
    assert [p["rank"] for p in found["plans"]] == [1, 2, 3]
    for plan in found["plans"]:
        assert plan["accelerator"] == "H100-80GB-SXM"
        assert plan["num_gpus"] == 64
        assert plan["memory_bytes"]["total"] <= plan["memory_bytes"]["capacity"]
        assert 0.05 < plan["mfu"] < 0.7
        steps = 1e11 / (8192 * 512)
        assert plan["wall_clock_hours"] == pytest.approx(
            steps * plan["step_s"]["total"] / 3600, rel=1e-3
        )
    status, said, _ = run(*asked, "--top", "1")
    assert status == 0
    first = found["plans"][0]
    assert fmt.usd(first["paid_usd"], digits=3) in said
    assert fmt.days(first["expected_hours"]) in said
    assert said.rstrip().endswith(found["link"])


def test_a_link_of_an_answer_gives_the_answer_again(run):
    """What the command line prints reopens as it was, a custom model included."""
    asked = [*PLAN, "--gpu", "B200", "--num-gpus", "8", "--purchase", "spot", "--top", "2"]
    _, out, _ = run(*asked, "--json")
    first = json.loads(out)
    status, out, err = run("plan", "--link", first["link"], "--top", "2", "--json")
    assert (status, err) == (0, "")
    again = json.loads(out)
    assert again["plans"] == first["plans"]
    assert again["link"] == first["link"]


def test_validate_lists_the_columns_that_it_reads(run):
    status, out, _ = run("validate", "--columns")
    assert status == 0
    assert "run_id" in out
    listed = {row[0] for row in columns_table().rows}
    assert {"moe_dispatcher", "software_date", "num_gpus", "tokens_per_s_per_gpu"} <= listed
    assert "notes" not in listed


def test_validate_passes_files_and_writes(run, refused, monkeypatch):
    calls = []

    def validate(runs, models, pairs=None, own_path=None):
        calls.append((runs, models, pairs))
        return "report"

    monkeypatch.setattr("app.accuracy.validate.validate", validate)
    monkeypatch.setattr("app.accuracy.as_json.report_json", lambda r: {"throughput": {"n": 1}})
    monkeypatch.setattr("app.accuracy.as_json.write_out", lambda r, path: calls.append((r, path)))
    monkeypatch.setattr("app.accuracy.sections.report_blocks", lambda r: [Paragraph(f"<{r}>")])
    files = ["validate", "--runs", "r.csv", "--models", "m.csv"]
    assert run(*files) == (0, "<report>\n", "")
    status, out, _ = run(*files, "--pairs", "p.csv", "--out", "o.csv", "--json")
    assert (status, json.loads(out)) == (0, {"throughput": {"n": 1}})
    assert calls == [
        (Path("r.csv"), Path("m.csv"), None),
        (Path("r.csv"), Path("m.csv"), Path("p.csv")),
        ("report", Path("o.csv")),
    ]

    def unusable(runs, models, pairs=None, own_path=None):
        raise RunsError("r.csv has no column run_id.")

    monkeypatch.setattr("app.accuracy.validate.validate", unusable)
    assert refused(*files) == "r.csv has no column run_id."


def test_an_output_that_cannot_be_written(refused, monkeypatch, tmp_path):
    monkeypatch.setattr("app.accuracy.validate.validate", lambda *files, **_: "report")
    monkeypatch.setattr("app.accuracy.as_json.write_out", lambda r, path: path.open("w").close())
    said = refused(
        "validate", "--runs", "r.csv", "--models", "m.csv", "--out", str(tmp_path / "no" / "o.csv")
    )
    assert said.startswith("Cannot use ")
    assert said.endswith("no such file or directory.")


def command(*arguments, **options):
    """The command line as its own process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=ROOT,
        **options,
    )


def test_the_help_names_every_command_in_one_whole_line(run):
    _, out, _ = run("--help")
    lines = out.split("Commands:\n")[1].splitlines()
    names = [line.split()[0] for line in lines]
    assert not [line for line in lines if not line.endswith(".") or line.endswith("...")]
    commands = typer.main.get_command(cli.app).commands
    assert set(names) == {name for name, command in commands.items() if not command.hidden}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert not [n for n in names if f"`{n}`" not in readme]


def test_help_reads_no_table():
    """`--help` must answer at once: nothing heavy is imported for it."""
    loads = "import sys; from app import cli; print(*sys.modules)"
    modules = subprocess.check_output([sys.executable, "-c", loads], cwd=ROOT, text=True).split()
    heavy = {"numpy", "pandas", "pyarrow", "streamlit", "pydantic", "torch", "altair"}
    assert not heavy & set(modules)


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], *([c, "--help"] for c in ("plan", "estimate", "gpus", "offers", "models"))],
)
def test_help_is_plain_text(run, arguments):
    status, out, err = run(*arguments)
    assert (status, err) == (0, "")
    assert "Usage: runcast" in out
    assert not re.search("[\u2500-\u257f]", out)


def test_the_version_is_that_of_the_distribution(run):
    status, out, _ = run("--version")
    assert status == 0
    assert re.fullmatch(r"runcast (\d+\.\d+\S*|\(not installed\))\n", out)


@pytest.mark.parametrize("first", [True, False], ids=["after a line", "at once"])
def test_a_reader_that_goes_away_is_no_error(first):
    with command("models") as process:
        assert not first or process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=30) in (0, 1)


def test_a_terminal_without_utf8_still_reads(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    with command("plan", "--help") as process:
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b"")
    assert b"Usage: runcast plan" in out


def test_an_output_that_is_closed_is_no_error():
    """`runcast models >&-`: there is nobody to write to."""
    quiet = f"{sys.executable} -m app.cli models >&- 2>&-"
    assert subprocess.run(quiet, shell=True, cwd=ROOT, check=False).returncode == 0  # noqa: S602


def test_interrupting_is_quiet(run, asked, monkeypatch):
    def interrupted(scenario, top):
        raise KeyboardInterrupt

    monkeypatch.setattr("app.forecast.answer.answer", interrupted)
    assert run(*PLAN) == (130, "", "")
