"""`runcast explain`: what it prints, and what it refuses."""

from __future__ import annotations

import json

import pytest

JOB = ["--model", "llama3.1-8b", "--tokens", "1e12", "--seq-len", "8k"]
JOB += ["--global-batch-size", "512", "--gpu", "h100", "--cloud", "aws", "--num-gpus", "64"]
JOB += ["--stack", "generic"]
EXPLAIN = ["explain", *JOB]


def test_the_best_plan_is_explained(run):
    status, out, err = run(*EXPLAIN)
    assert (status, err) == (0, "")
    for part in (
        "Plan 1: ",
        "Against the next plan",
        "layouts that fit and differ in one or two knobs",
        "What would make it faster",
        "Next bottleneck: ",
        "Each input 10% down and up, the layout as it is",
        "the best layout of these machines searched again",
        "of the interval's variance",
    ):
        assert part in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 100


def test_a_layout_that_cannot_be_is_explained(run):
    status, out, _ = run(*EXPLAIN, "--layout", "tp=3")
    assert status == 0
    flat = " ".join(out.split())
    assert "tp=3 is not possible: 4 rules are broken." in flat
    assert "tp does not divide the attention heads (tp = 3, attention heads = 32)." in flat
    assert "What would make it faster" not in flat


def test_a_layout_that_does_not_fit_is_explained(run):
    status, out, _ = run(*EXPLAIN, "--model", "llama3.1-70b", "--layout", "tp=1,pp=1,sharding=ddp")
    assert status == 0
    flat = " ".join(out.split())
    assert "does not fit the memory. It lacks " in flat
    assert "the cheapest first:" in flat
    assert "sharding ddp to " in flat
    assert "Against plan 1, with the memory, it takes " in flat


def test_two_layouts_are_held_against_one_another(run):
    status, out, _ = run(*EXPLAIN, "--layout", "tp=8", "--against", "tp=2,pp=2")
    assert status == 0
    flat = " ".join(out.split())
    assert "The other takes " in flat
    assert "Whole step" in flat
    assert "Over the run, without failures: " in flat


def test_json_is_one_document(run):
    status, out, err = run(*EXPLAIN, "--layout", "tp=8", "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert found["schema_version"] == 1
    assert found["layouts"][0]["layout"]["tp"] == 8
    assert found["difference"]["step"]["second_s"] == found["layouts"][0]["figures"]["step_s"]


def test_another_rank_is_another_plan(run):
    _, out, _ = run(*EXPLAIN, "--rank", "2", "--json")
    found = json.loads(out)
    assert found["plan"]["rank"] == 2
    assert found["why"]["runner_up"]["name"] != found["plan"]["id"]


def test_a_link_selects_the_plan_that_is_explained(run):
    _, out, _ = run(*EXPLAIN, "--json", "--rank", "2")
    plan_id = json.loads(out)["plan"]["id"]
    _, out, _ = run(
        "explain", "--json", "--link",
        f"?v=1&gpu=H100-80GB-SXM&cloud=aws&num_gpus=64&num_tokens=1e12&plan={plan_id}",
    )  # fmt: skip
    assert json.loads(out)["plan"]["id"] == plan_id


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--layout", ""], "empty"),
        (["--layout", "tp=x"], "whole number"),
        (["--against", "sharding=zero9"], "not one of"),
        (["--layout", "dp=7"], "7 GPUs"),
        (["--rank", "0"], "whole number from 1"),
        (["--rank", "-1"], "whole number from 1"),
        (["--rank", "900"], "beyond the ranked plans"),
        (["--rank", "one"], "whole number from 1"),
        (["--model", "no-such-model"], "no-such-model"),
        (["--gpu", "h1000"], "h1000"),
        (["--seq-len", "-1"], "--seq-len"),
    ],
)
def test_a_mistake_is_one_sentence(run, arguments, says):
    status, out, err = run(*EXPLAIN, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert says in err
    assert "Traceback" not in err


def test_help_names_the_command_and_its_options(run):
    _, out, _ = run("--help")
    assert "explain" in out
    _, out, _ = run("explain", "--help")
    assert all(name in out for name in ("--layout", "--against", "--rank", "--json"))
