"""`runcast watch`: a run held against its plan, on a terminal, as JSON and as metrics."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from core.watch.records import Alert
from tests.support.logs import LOGS

PAGE = Path(__file__).parents[3] / "docs/watch.md"
JOB = ["--model", "llama3.1-8b", "--gpu", "h100", "--num-gpus", "8", "--seq-len", "8k"]
JOB += ["--global-batch-size", "16", "--stack", "torchtitan", "--compile"]
LAYOUT = ["--layout", "tp=1,pp=1,sharding=fsdp2,micro_batch_size=2,recompute=selective"]
TITAN = [str(LOGS / "torchtitan.txt"), *JOB, *LAYOUT]


@pytest.fixture
def watched(run):
    def _watched(*arguments, status=0):
        found, out, err = run("watch", *arguments, "--json")
        assert found == status, err
        assert "NaN" not in out
        return [json.loads(line) for line in out.splitlines()]

    return _watched


def titan(n: int, second: int, *, loss: float = 2.5, tps: float = 6300.0) -> str:
    clock = f"2026-02-11 {9 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d},000"
    return (
        f"[titan] {clock} - root - INFO - step: {n:2d}  loss: {loss:8.5f}  memory: 47.20GiB(59.71%)"
        f"  tps: {tps:,.0f}  tflops: 362.88  mfu: 36.66%\n"
    )


@pytest.fixture
def finished(tmp_path) -> list[str]:
    path = tmp_path / "finished.log"
    again = [*range(1, 121), *range(101, 301)]
    path.write_text("".join(titan(n, 3 * k, loss=9 / n**0.1) for k, n in enumerate(again, 1)))
    return [str(path), *JOB, *LAYOUT, "--tokens", "1e8", "--once"]


def test_a_finished_log_once(watched, finished):
    (state,) = watched(*finished)
    assert state["starts"] == 2
    assert state["lost_s"]["restart"] == pytest.approx(20 * 2.6, rel=0.2)
    assert state["next_plan"]["failures_per_node_day"] == pytest.approx(
        86_400 / state["elapsed_s"], rel=0.01
    )
    assert state["tokens_per_s"] == pytest.approx(8 * 6300, rel=0.02)
    assert state["share"] == pytest.approx(state["tokens"] / 1e8)
    assert state["alerts"] == state["mismatches"] == []
    assert state["end_s"]["p10"] < state["end_s"]["p50"] < state["end_s"]["p90"]
    assert state["usd"]["p50"] > 0
    believed, forecast = state["believed_tokens_per_s"], state["forecast_tokens_per_s"]
    assert believed["p90"] - believed["p10"] < forecast["p90"] - forecast["p10"]


def test_every_key_is_documented(watched, finished):
    (state,) = watched(*finished)
    section = PAGE.read_text(encoding="utf-8").partition("--json`\n")[2]
    named = {key for row in re.findall(r"^\| (.+?) \|", section, re.M) for key in
             re.findall(r"`(\w+)`", row)}  # fmt: skip
    assert named == set(state)
    alerts = next(line for line in section.splitlines() if line.startswith("| `alerts`"))
    fields = {*Alert.__dataclass_fields__, "lost_usd", "sentence", "causes"}
    assert set(re.findall(r"`(\w+)`", alerts)) - {"alerts"} == fields


def test_stay_or_move_counts_the_move_and_says_until_when_it_pays(watched, finished, run):
    plenty = [*finished, "--tokens", "1e10", "--offers"]
    (early,) = watched(*plenty)
    for move in early["moves"]:
        assert set(move["move_s"]) == {"checkpoint", "conversion", "load", "start"}
        assert move["left_s"] > sum(move["move_s"].values())
    best = early["moves"][0]
    assert best["left_usd"] < best["left_here_usd"]
    assert 0 < best["saves_usd_until_share"] < 1
    shares = [m["saves_usd_until_share"] for m in early["moves"]]
    needed = (1 - max(s for s in shares if s is not None)) * 1e10  # tokens that must be left
    assert early["tokens"] < 1e10 - needed
    little = [*finished, "--tokens", f"{early['tokens'] + needed / 20:.0f}", "--offers"]
    (late,) = watched(*little)
    assert late["moves"]
    # Smaller machines than those of before may be offered now: each is past its own share.
    for move in late["moves"]:
        assert move["left_usd"] > move["left_here_usd"]
        assert (move["saves_usd_until_share"] or 0.0) < late["share"]
    _, out, _ = run("watch", *little)
    assert "Stay: to move costs" in out


def test_causes_are_ordered_by_what_lies_beside_and_their_remedies_are_forecast(
    watched, run, tmp_path
):
    path, dmon = tmp_path / "slow.log", tmp_path / "dmon.txt"
    path.write_text("".join(titan(n, 3 * n, loss=9 / n**0.1, tps=4000.0) for n in range(1, 500)))
    head = "# gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk\n"
    dmon.write_text(head + "0  300  60  -  55  50  2619  1980\n" * 9)
    job = [*JOB[:-2], "generic", *LAYOUT, "--tokens", "1e10", "--once", "--beside", dmon]
    (state,) = watched(str(path), *map(str, job), status=3)
    causes = state["alerts"][0]["causes"]
    assert state["alerts"][0]["kind"] == "slower_than_p10"
    assert [c["cause"] for c in causes if c["seen"]] == [c["cause"] for c in causes[:2]]
    assert "busy 55%" in causes[0]["evidence"]
    host = next(c for c in causes if c["cause"].startswith("the host launches"))
    assert host["faster_share"] == pytest.approx(0.04, abs=0.02)
    left = state["end_s"]["p50"] - state["elapsed_s"]
    share = host["faster_share"]
    assert host["saves_s"] == pytest.approx(left * share / (1 + share), rel=0.01)
    _, out, _ = run("watch", str(path), *job)
    said = " ".join(out.split())
    assert "% faster" in said
    assert "Not told apart by what was read: the host launches kernels too slowly, data" in said


def test_what_gives_another_run_away(watched, tmp_path):
    (state,) = watched(
        str(LOGS / "torchtitan.txt"), "--model", "llama3.1-70b", "--gpu", "h200", "--num-gpus",
        "64", "--seq-len", "8k", "--global-batch-size", "64", "--tokens", "1e12", "--once",
        status=3,
    )  # fmt: skip
    said = " ".join(state["mismatches"])
    assert "the number of GPUs is 8, and the plan 64" in said
    assert "NVIDIA H100 80GB HBM3" in said
    path = tmp_path / "x.log"
    size = "Model llama3 70B size: 70,553,706,496 total parameters\n"
    path.write_text(size + "".join(titan(n, 20 * n) for n in range(1, 9)))
    (state,) = watched(str(path), *JOB, *LAYOUT, "--tokens", "1e8", "--once", status=3)
    assert "70,553,706,496 parameters" in state["mismatches"][0]


def test_a_run_that_grows_is_followed_to_its_end(watched, tmp_path, monkeypatch):
    """Ten lines a look; the loss is NaN from step 60 on, and the command of the alert is run."""
    path, said = tmp_path / "run.log", tmp_path / "said.json"
    steps = 100

    def writes(_seconds: float) -> None:
        done = len(path.read_text().splitlines()) if path.exists() else 0
        with path.open("a") as file:
            for n in range(done + 1, min(done + 10, steps) + 1):
                file.write(titan(n, 3 * n, loss=float("nan") if n >= 60 else 3 - n / 100))

    monkeypatch.setattr(time, "sleep", writes)
    metrics = tmp_path / "run.prom"
    *_, last = watched(
        str(path), *JOB, *LAYOUT, "--tokens", str(steps * 16 * 8192), "--every", "0.000001",
        "--on-alert", f"tee {said}", "--prometheus-textfile", str(metrics), status=3,
    )  # fmt: skip
    assert last["done"]
    assert last["steps"] > steps - 2
    assert [a["kind"] for a in last["alerts"]] == ["loss_not_finite"]
    assert json.loads(said.read_text())["causes"][0]["source"]
    assert 'runcast_run_alerts{kind="loss_not_finite"} 1' in metrics.read_text()


def test_a_replay_gives_a_state_for_each_period_and_the_end_narrows(watched, tmp_path):
    path = tmp_path / "run.log"
    path.write_text("".join(titan(n, n * 2, loss=3 - n / 999, tps=8192.0) for n in range(1, 1000)))
    states = watched(
        str(path), *JOB, *LAYOUT, "--tokens", str(999 * 16 * 8192), "--replay", "max", "--every",
        "200",
    )  # fmt: skip
    assert 9 <= len(states) <= 12
    width = [s["end_s"]["p90"] - s["end_s"]["p10"] for s in states]
    assert width[0] > width[3] > width[-1]
    tenth = next(s for s in states if s["share"] > 0.1)
    assert tenth["end_s"]["p50"] == pytest.approx(states[-1]["elapsed_s"], rel=0.05)


def test_the_header_of_a_launch_file_names_the_plan(run, watched, tmp_path):
    status, out, err = run("export", *JOB, "--tokens", "1e8", "--to", "torchrun")
    assert status == 0, err
    launch = tmp_path / "launch.sh"
    launch.write_text(out)
    _, said, err = run("watch", str(LOGS / "torchtitan.txt"), "--report", str(launch), "--once")
    assert (err, "of 100M tokens" in said) == ("", True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("no/such/folder/x.log", "--once"), "does not exist"),
        (("missing.log", *JOB, *LAYOUT, "--tokens", "1e8", "--once"), "is not there"),
        ((*TITAN, "--once"), "Missing --tokens"),
        ((*TITAN, "--tokens", "1e8", "--replay", "fast"), "--replay 'fast'"),
        ((*TITAN, "--tokens", "1e8", "--once", "--replay", "2"), "not both"),
        ((*TITAN, "--tokens", "1e8", "--on-alert", "'"), "is no command"),
        ((*TITAN, "--tokens", "1e8", "--report", str(LOGS / "plain.txt")), "names no plan"),
    ],
)
def test_a_mistake_is_a_sentence(run, arguments, sentence):
    status, out, err = run("watch", *arguments)
    assert (status, out) == (2, "")
    assert sentence in err


def test_what_commands_a_terminal_in_a_log_is_not_printed(run, tmp_path):
    path = tmp_path / "x.log"
    steps = "".join(titan(n, 3 * n) for n in range(1, 60))
    path.write_text(f"{steps}NCCL error \x1b[2J\x1b]0;mine\x07 \u202e \x9b31m\n{titan(60, 180)}")
    status, out, err = run("watch", str(path), *JOB, *LAYOUT, "--tokens", "1e8", "--once")
    assert (status, err) == (3, "")
    assert "NCCL error" in out
    assert not set(out) & {*"\x1b\x07\u202e\x9b"}


def test_a_log_without_a_step_ends_with_its_own_status(run, tmp_path):
    path = tmp_path / "empty.log"
    path.write_text("starting\n")
    status, out, _ = run("watch", str(path), *JOB, *LAYOUT, "--tokens", "1e8", "--once")
    assert status == 4
    assert "No step was logged yet." in out
