"""`runcast risk`: what it prints, what it rests on, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.command.given import option_of
from app.document.vocabulary import FAILURE_INPUTS
from app.forecast import failure_inputs
from core.scenario import Scenario
from hardware.reliability import used
from tests.support.documented_keys import keys

JOB = ["--model", "llama3.1-8b", "--tokens", "1e12", "--seq-len", "8k"]
JOB += ["--global-batch-size", "512", "--gpu", "h100", "--num-gpus", "64"]
RISK = ["risk", *JOB]
DOCUMENT = Path(__file__).parents[3] / "docs/risk.md"


@pytest.fixture
def answered(run):
    def _answered(*arguments):
        status, out, err = run(*RISK, *arguments, "--json")
        assert (status, err) == (0, "")
        assert "NaN" not in out
        return json.loads(out)

    return _answered


def test_the_answer_and_what_it_rests_on(run):
    status, out, err = run(*RISK, "--deadline-days", "60")
    assert (status, err) == (0, "")
    flat = " ".join(out.split())
    for part in (
        "on average, 8 times in 10 between", "Without failures, at the forecast speed",
        "The time goes to",
        "Work between checkpoints", "Rests on:", "published: Llama Team, arXiv:2407.21783",
    ):  # fmt: skip
        assert part in flat
    assert max(map(len, out.splitlines())) <= 100


def test_the_figures_of_the_json_belong_together(answered):
    found = answered("--stack", "generic")
    hours, steady = found["hours"], found["plan"]["wall_clock_hours"]
    assert sum(found["badput_hours"].values()) == pytest.approx(hours["expected"])
    assert hours["expected"] == found["plan"]["expected_hours"]
    assert found["usd"]["expected"] == found["plan"]["expected_usd"]
    assert found["paid"] == found["usd"]
    start = found["badput_hours"]["startup"]
    assert found["goodput"] == pytest.approx(steady / (found["failures_only_hours"] - start))
    assert steady < found["failures_only_hours"] < hours["expected"]
    for spread in (hours, found["usd"]):
        assert spread["p10_all"] < spread["p50"] < spread["expected"] < spread["p90"]
        assert (spread["p50_all"], spread["p90_all"]) == (spread["p50"], spread["p90"])
    best, young, daly = found["checkpoint_intervals"]
    assert (best["name"], young["name"], daly["name"]) == ("best", "young", "daly")
    assert best["expected_hours"] == pytest.approx(hours["expected"], rel=1e-12)
    assert best["expected_hours"] <= young["expected_hours"]
    inputs = {i["name"]: i for i in found["inputs"]}
    assert found["mean_hours_to_failure"] == pytest.approx(
        24 / (8 * inputs["failures_per_node_day"]["value"])
    )
    # 8.03 billion parameters of 14 bytes at the rates of the table, from and to 8 machines.
    size = 8_030_261_248 * 14
    written, read = (
        size / (8 * used(f"machine_{way}_bytes_per_s").value) for way in ("write", "read")
    )
    assert inputs["upload_s"]["value"] == pytest.approx(written)
    assert inputs["checkpoint_s"]["value"] == pytest.approx(6.3 + size / 64 / 63e9)
    assert inputs["restart_s"]["value"] == pytest.approx(300 + 0.003 * 64 + read)
    assert {i["basis"] for i in inputs.values()} == {"default", "assumed"}
    assert all(i["source"] for i in inputs.values())
    assert found["simulated_hours"] is found["misses_deadline_probability"] is None
    low, high = found["published_rates"]
    assert low["expected_hours"] < hours["expected"] < high["expected_hours"]


def test_the_plan_is_that_of_runcast_plan(run, answered):
    _, out, _ = run("plan", *JOB, "--top", "1", "--json")
    plan = json.loads(out)["plans"][0]
    found = answered()
    assert found["plan"]["id"] == plan["id"]
    assert found["plan"]["wall_clock_hours"] == plan["wall_clock_hours"]


def test_every_number_that_is_given_counts(answered):
    base = answered()["hours"]["expected"]
    worse = {
        "--failures-per-node-day": "0.05", "--job-failures-per-day": "1",
        "--checkpoint-seconds": "300", "--detection-seconds": "7200", "--restart-seconds": "7200",
        "--wait-seconds": "7200", "--node-start-seconds": "3600", "--slow-probability": "0.5",
        "--interval-seconds": "1.8e6",
    }  # fmt: skip
    for option, value in worse.items():
        assert answered(option, value)["hours"]["expected"] > base, option
    waits = answered("--wait-seconds", "1e5")["badput_hours"]["waiting"]
    spared = answered("--wait-seconds", "1e5", "--spares", "1", "--repair-seconds", "3600")
    assert spared["badput_hours"]["waiting"] < waits / 10
    elastic = answered("--wait-seconds", "1e5", "--min-nodes", "1")
    assert elastic["badput_hours"]["waiting"] < waits / 1.5


def test_asynchronous_checkpoints_stop_training_less(answered):
    generic = ("--stack", "generic")
    blocking = answered(*generic, "--set", "async_checkpoint=0")
    behind = answered(*generic, "--asynchronous")
    assert behind["hours"]["expected"] < blocking["hours"]["expected"]
    inputs = {i["name"]: i["value"] for i in behind["inputs"]}
    stopped = next(i for i in blocking["inputs"] if i["name"] == "checkpoint_s")
    # Left out, it is as the stack can: PyTorch since 2024-07, GPT-NeoX never.
    for stack, date, seconds in (
        ("generic", "2025-01", inputs["checkpoint_s"]), ("generic", "2023-01", stopped["value"]),
        ("gpt-neox", "2025-01", stopped["value"]),
    ):  # fmt: skip
        found = answered("--stack", stack, "--software-date", date)["inputs"]
        assert next(i for i in found if i["name"] == "checkpoint_s")["value"] == seconds
    assert 1 < inputs["checkpoint_s"] < inputs["upload_s"] < 60
    # No shorter than the upload takes: the one before must have ended.
    assert behind["checkpoint_intervals"][0]["interval_s"] >= inputs["upload_s"] * 0.99


def test_bursts_are_simulated_beside(answered):
    found = answered("--weibull-shape", "1", "--job-failures-per-day", "5")
    assert found["simulated_hours"]["expected"] == pytest.approx(
        found["failures_only_hours"], rel=0.005
    )
    bursty = answered("--weibull-shape", "0.5", "--job-failures-per-day", "5")
    spreads = [f["simulated_hours"]["p90"] - f["simulated_hours"]["p50"] for f in (found, bursty)]
    assert spreads[1] > 1.3 * spreads[0]


def test_no_failures_are_the_plan_and_its_checkpoint(answered):
    found = answered("--failures-per-node-day", "0", "--checkpoint-seconds", "0")
    assert found["goodput"] == 1.0
    start = found["badput_hours"]["startup"]
    alone = start + found["plan"]["wall_clock_hours"]
    assert found["failures_only_hours"] == found["hours"]["p50"] == pytest.approx(alone)
    assert found["mean_hours_to_failure"] is None


def test_what_never_finishes_is_said_with_its_chance(run, answered):
    hopeless = ("--failures-per-node-day", "50", "--checkpoint-seconds", "7200")
    status, out, _ = run(*RISK, *hopeless)
    flat = " ".join(out.split())
    assert status == 0
    assert "it does not end: an attempt gets as far as its next checkpoint with a chance of" in flat
    assert "nan" not in flat
    found = answered(*hopeless)
    assert not found["finishes"]
    assert found["hours"] is found["usd"] is found["goodput"] is None
    assert 0 < found["attempt_probability"] < 1e-3


def test_a_price_that_is_not_known_leaves_the_time(answered):
    found = answered("--purchase", "owned")
    assert found["usd"] is found["paid"] is found["plan"]["usd"] is None
    assert found["hours"]["expected"] > found["plan"]["wall_clock_hours"]


def test_spot_has_its_interruptions(answered):
    found = answered("--purchase", "spot")
    calm = answered("--purchase", "spot", "--preemptions-per-day", "0")
    lost = found["badput_hours"]["preemption"]
    assert lost > 24 > calm["badput_hours"]["preemption"] == pytest.approx(0, abs=1e-6)
    assert found["hours"]["expected"] > calm["hours"]["expected"] + 0.9 * lost
    assert found["checkpoint_intervals"][0]["expected_hours"] == pytest.approx(
        found["hours"]["expected"], rel=1e-9
    )
    assert (
        found["checkpoint_intervals"][0]["interval_s"]
        < calm["checkpoint_intervals"][0]["interval_s"] / 2
    )
    assert any("interruptions are" in s for s in found["sentences"])
    assert {"preemptions_per_day", "outage_hours"} <= {i["name"] for i in found["inputs"]}
    assert not any("interruptions" in s for s in answered()["sentences"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("--purchase", "spot"),
        ("--purchase", "reserved_1y"),
        ("--interval-seconds", "7200"),
        ("--slow-probability", "0.1"),
        ("--wait-seconds", "1e4", "--failures-per-node-day", "0.05"),
    ],
)
def test_hours_are_those_of_the_plan(answered, arguments):
    found = answered(*arguments)
    assert found["hours"]["expected"] == found["plan"]["expected_hours"]
    assert found["usd"]["expected"] == found["plan"]["expected_usd"]
    assert found["paid"]["expected"] == found["plan"]["paid_usd"]
    used = found["checkpoint_intervals"][0]["expected_hours"]
    assert used == pytest.approx(found["hours"]["expected"], rel=1e-9)
    assert sum(found["badput_hours"].values()) == pytest.approx(used)


def test_a_commitment_is_named_before_its_share(run, answered):
    arguments = ("--purchase", "reserved_1y")
    found = answered(*arguments)
    assert found["paid"]["expected"] > 3 * found["usd"]["expected"]
    assert any(s.startswith("You commit to $") for s in found["sentences"])
    _, out, _ = run(*RISK, *arguments)
    assert "Committed" in out


def test_chance_of_a_deadline_is_that_of_the_quantile(answered):
    p90 = answered()["hours"]["p90"]
    late = answered("--deadline-days", str(p90 / 24), "--deadline-confidence", "0.5")
    assert late["misses_deadline_probability"] == pytest.approx(0.1, abs=0.005)


def test_adapters_are_small_checkpoints(answered):
    def stop(*arguments):
        return {i["name"]: i["value"] for i in answered(*arguments)["inputs"]}["checkpoint_s"]

    # So small that writing them at once stops training for less than a copy behind it.
    assert stop("--task", "lora") < stop() / 20


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--failures-per-node-day", "-1"), "--failures-per-node-day '-1' should be at least 0"),
        (("--failures-per-node-day", "inf"), "is not a number like"),
        (("--checkpoint-seconds", "ten"), "--checkpoint-seconds 'ten' is not a number like"),
        (("--slow-probability", "2"), "should be at most 1."),
        (("--weibull-shape", "0"), "should be at least 0.2"),
        (("--spares", "2"), "--spares needs --repair-seconds"),
        (("--min-nodes", "2"), "--min-nodes needs --wait-seconds"),
        (("--min-nodes", "0", "--wait-seconds", "9"), "--min-nodes"),
        (("--spares", "2", "--repair-seconds", "60"), "--spares needs --wait-seconds"),
        (("--spares", "1.5", "--repair-seconds", "60", "--wait-seconds", "9"), "whole number"),
        (("--interval-seconds", "0.01"), "is shorter than"),
        (("--asynchronous", "--checkpoint-seconds", "3"), "leave --checkpoint-seconds out"),
    ],
)
def test_a_mistake_is_a_sentence(run, arguments, says):
    status, out, err = run(*RISK, *arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_nothing_fits_is_a_sentence(run):
    status, _, err = run(*RISK, "--num-gpus", "8", "--model", "llama3.1-405b")
    assert status == 2
    assert "fit" in err


def test_every_key_and_option_is_documented(answered):
    document = DOCUMENT.read_text(encoding="utf-8")
    section = document.partition("\n## Keys of `runcast risk --json`\n")[2]
    text = section.partition("\n## ")[0]

    named = set(re.findall(r"`(\w+)`", text))
    assert set(keys(answered("--weibull-shape", "1"))) <= named
    assert set(failure_inputs.NAMES) - {"interval_s", "weibull_shape"} <= set(FAILURE_INPUTS)
    assert all(option_of(name) for name in failure_inputs.NAMES)
    assert failure_inputs.given_numbers(Scenario()) == {}
