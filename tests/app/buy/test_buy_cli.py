"""`runcast buy`: what it prints, its JSON, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.documented_keys import keys

JOB = ["--model", "llama3.1-8b", "--tokens", "1e12", "--seq-len", "8k",
       "--global-batch-size", "512", "--gpu", "h100", "--num-gpus", "64"]  # fmt: skip
BUY = ["buy", *JOB, "--deadline-days", "30"]
RATE = ["--preemptions-per-day", "0.2"]  # one market: quicker
DOCUMENT = Path(__file__).parents[3] / "docs/risk.md"


@pytest.fixture
def answered(run):
    def _answered(*arguments):
        status, out, err = run(*BUY, *arguments, "--json")
        assert (status, err) == (0, "")
        assert "NaN" not in out
        return json.loads(out)

    return _answered


def bursts(path: Path) -> Path:
    """Sixty calm days, then eight in which spot is up every other half hour."""
    rows, at = ["start_hours,end_hours"], 0.0
    for _ in range(4):
        rows.append(f"{at:g},{at + 1440:g}")
        at += 1441
        for _ in range(192):
            rows.append(f"{at:g},{at + 0.5:g}")
            at += 1
    path.write_text("\n".join(rows) + "\n")
    return path


def test_the_answer_every_way_and_what_it_rests_on(run):
    status, out, err = run(*BUY)
    assert (status, err) == (0, "")
    flat = " ".join(out.split())
    for part in (
        "The cheapest way to buy ", "Way to buy", "Machines of these prices:", "Without figures:",
        "Policy on spot", "Rests on:",
    ):  # fmt: skip
        assert part in flat, part
    assert "nan" not in flat
    prose = [line for line in out.splitlines() if not re.search(r"  +\S+  +\S+  +", line)]
    assert max(map(len, prose)) <= 100


def test_a_bursty_trace_is_replayed_and_the_reason_said(run, tmp_path):
    status, out, _ = run(*BUY, "--trace", str(bursts(tmp_path / "mine.csv")))
    flat = " ".join(out.split())
    assert status == 0
    assert re.search(
        r"your trace gives spot only a P90 of [\d.]+ days, above the [\d.]+ days of exponential "
        r"uptimes and outages with the same means: its uptimes vary [\d.]+ times more", flat
    )  # fmt: skip
    assert "your trace, " in flat
    assert "(of the trace: " in flat


def test_the_json_is_documented_key_by_key(answered, tmp_path):
    document = DOCUMENT.read_text(encoding="utf-8")
    text = document.partition("\n## Keys of `runcast buy --json`\n")[2]

    found = answered("--trace", str(bursts(tmp_path / "mine.csv")))
    assert set(keys(found)) <= set(re.findall(r"`(\w+)`", text))
    assert {m["name"] for m in found["markets"]} == {"trace"}
    for name in [w["name"] for w in found["ways"]]:
        assert name in text
    assert found["schema_version"] == 1


def test_the_figures_of_the_json_belong_together(answered):
    found = answered(*RATE, "--reserved-utilisation", "0.8")
    ways = {w["name"]: w for w in found["ways"]}
    for way in ways.values():
        if way["hours"]:
            lost = sum(way["lost_hours"].values())
            assert way["training_hours"] + lost == pytest.approx(way["hours"]["expected"])
            for figures in (way["hours"], way["usd"], way["paid"]):
                assert figures["p10_all"] <= figures["p50_all"] <= figures["p90_all"]
                assert (figures["p50"], figures["p90"]) == (figures["p50_all"], figures["p90_all"])
                assert figures["p10_all"] < figures["expected"] <= figures["p90_all"]
            assert 0 <= way["misses_deadline_probability"] <= 1
    assert ways["reserved_1y"]["utilisation"] == 0.8
    assert ways["on_demand"]["idle_usd"] < 0.05 * ways["on_demand"]["usd"]["expected"]
    assert ways["reserved_3y_alone"]["idle_usd"] > ways["reserved_3y"]["usd"]["expected"]
    assert ways["owned"]["why_not"]
    assert found["exponential"]["cv"] == 1
    assert found["trace"] is None
    one = found["markets"][0]
    assert one["job_preemptions_per_day"] > one["preemptions_per_day"] == 0.2


def test_the_plan_of_a_link_is_the_one_that_is_bought(run, answered):
    _, out, _ = run("plan", *JOB, "--top", "3", "--json")
    third = json.loads(out)["plans"][2]["id"]
    assert answered(*RATE, "--set", f"plan={third}")["plan"]["id"] == third
    status, _, err = run(*BUY, *RATE, "--set", "plan=nobody", "--json")
    assert status == 2
    assert "'nobody' is not among the ranked plans" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--preemptions-per-day", "-1"), "--preemptions-per-day '-1' should be at least 0"),
        (("--reserved-utilisation", "0"), "--reserved-utilisation '0' should be above 0"),
        (("--block-days", "nan"), "is not a number like"),
        (("--trace", "/no/such.csv"), "such.csv"),
        (("--interval-seconds", "0.01"), "is shorter than"),
        (("--spares", "2"), "--spares needs --repair-seconds"),
    ],
)
def test_a_mistake_is_a_sentence(run, arguments, says):
    status, out, err = run(*BUY, *arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("start_hours,end_hours\n0,5\n4,9\n", "start"),
        ("start_hours,end_hours\n5,3\n", "end"),
        ("start_hours,end_hours\n-1,3\n", "before the trace"),
        ("a,b\n1,2\n", "column"),
    ],
)
def test_a_wrong_trace_is_a_sentence(run, tmp_path, text, says):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    status, out, err = run(*BUY, "--trace", str(path))
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_nothing_fits_is_a_sentence(run):
    status, _, err = run(*BUY, "--num-gpus", "8", "--model", "llama3.1-405b")
    assert status == 2
    assert "fit" in err
