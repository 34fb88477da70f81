"""The probe itself, run as it is on a node: a process of its own, on this machine's CPU.

Its shapes are tiny and its times short: what is asserted is what it says, never how fast it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from runners.calibration import probe_plan
from runners.calibration.result import NEEDED, parse_result
from runners.calibration.validity import judged
from runners.probe_file import probe_text
from runners.probes import node
from runners.probes.budget import USED_UP
from runners.probes.collectives import OPS, bus_factor
from tests.support.processes import free_port

ENV = {**os.environ, "OMP_NUM_THREADS": "1", "HF_TOKEN": "hf_x", "NCCL_SECRET": "s3cret"}
ENV |= {"GLOO_SOCKET_IFNAME": "lo"}
QUICK = [g for g in probe_plan.GROUPS if g != "compiled_block"]


def tiny_plan(run_id, groups=QUICK, **changes):
    """A reduced plan, with a block that takes milliseconds."""
    plan = probe_plan.probe_plan(
        run_id=run_id, launcher="local", planner_version="0.1.0", reduced=True, groups=groups,
        row_s=0.01, collective_s=0.3, collective_max_bytes=2**16,
    )  # fmt: skip
    block = {"hidden_size": 64, "ffn_hidden_size": 128, "num_attention_heads": 2, "head_dim": 32}
    plan["block"] |= {**block, "num_kv_heads": 1, "vocab_size": 128, "seq_len": 32}
    plan["shapes"] = [s for s in plan["shapes"] if s["label"] in ("small_m", "wgrad", "odd")]
    plan["shapes"] = [{**s, "m": 64, "k": 96} for s in plan["shapes"]]
    return {**plan, **changes}


def command(folder, plan, *options):
    folder.mkdir(exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(plan))
    # The node has this one file: nothing of ours can be imported beside it.
    (folder / "node.py").write_text(probe_text(), encoding="utf-8")
    return ["node.py", "--plan", "plan.json", "--out", "result.json", *options]


def run_probe(folder, plan, *options, by=("-P",), status=0):
    done = subprocess.run(
        [sys.executable, *by, *command(folder, plan, *options)],
        cwd=folder, env=ENV, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done


def printed(text, run_id):
    """What stands between the marker lines of standard output."""
    begin, end = (f"-----{w} RUNCAST RESULT {run_id}-----\n" for w in ("BEGIN", "END"))
    return text.partition(begin)[2].partition(end)[0].rstrip("\n")


@pytest.fixture(scope="module")
def probed(tmp_path_factory):
    """One real run of every quick group: the folder, what it said, its result."""
    folder = tmp_path_factory.mktemp("probe")
    done = run_probe(folder, tiny_plan("quick-1"), "--anonymise")
    return folder, done, parse_result((folder / "result.json").read_bytes())


def test_the_result_is_on_standard_output_and_in_the_file(probed):
    folder, done, result = probed
    text = printed(done.stdout, "quick-1")
    assert "\n" not in text
    assert text == (folder / "result.json").read_text()
    assert result.complete
    assert result.run_id == "quick-1"
    ran = (folder / "node.py").read_bytes()
    assert result.provenance.probe_sha256 == hashlib.sha256(ran).hexdigest()
    # Neither a partial result nor a checkpoint is left behind.
    assert sorted(p.name for p in folder.iterdir()) == ["node.py", "plan.json", "result.json"]


def test_every_group_tells_its_progress(probed):
    _, done, _ = probed
    told = re.findall(r"^runcast: group (\S+) (\d+)/(\d+) [\d.]+ s$", done.stderr, re.MULTILINE)
    assert [name for name, _, _ in told] == QUICK
    assert [(int(i), int(n)) for _, i, n in told] == [(i + 1, 12) for i in range(12)]


def test_every_group_has_rows_and_what_has_none_is_named(probed):
    _, _, result = probed
    alone = {"collectives", "overlap"}  # a single process has no others to communicate with
    assert {row.probe for row in result.results} == set(QUICK) - alone
    assert {(s.group, s.reason) for s in result.skipped} == {
        (name, "a single process has no others to communicate with") for name in alone
    }
    assert [group.name for group in result.groups] == QUICK


def test_the_control_is_timed_first_and_after_every_group(probed):
    _, _, result = probed
    measured = [name for name in QUICK if name not in ("collectives", "overlap")]
    assert [c.after_group for c in result.control] == ["start", *measured]
    assert [c.at_s for c in result.control] == sorted(c.at_s for c in result.control)


def test_the_operations_were_right(probed):
    _, _, result = probed
    found = judged(result, peak_flops_by_dtype={}, memory_bandwidth=None)
    # A loaded machine may be suspect; wrong it is never.
    assert found.status in ("ok", "suspect"), found.refusal()
    assert {row.dtype for row in result.rows("matmul")} == {"bf16", "fp32"}
    losses = [r for r in result.results if r.loss_first is not None and r.loss_last is not None]
    assert {row.probe for row in losses} == {"layers", "holdout"}
    assert all(row.loss_last < row.loss_first for row in losses)
    assert {row.params["num_layers"] for row in result.rows("layers")} == {1, 3}


def test_no_secret_and_no_host_is_in_the_result(probed):
    folder, _, result = probed
    text = (folder / "result.json").read_text()
    made = result.provenance
    for secret in ("hf_x", "s3cret", "HF_TOKEN", "NCCL_SECRET", str(folder)):
        assert secret not in text
    assert made.env["OMP_NUM_THREADS"] == "1"
    assert made.anonymised
    assert re.fullmatch(r"[0-9a-f]{8}", made.host)
    assert result.nodes[0].host == made.host


def test_the_same_run_again_measures_nothing_and_says_the_same(probed):
    folder, _, result = probed
    done = run_probe(folder, tiny_plan("quick-1"), "--anonymise")
    again = parse_result(printed(done.stdout, "quick-1"))
    assert again.results == result.results
    assert again.control == result.control
    assert done.stderr.count("(measured before)") == len(QUICK)


@pytest.mark.slow
def test_a_killed_run_goes_on_after_the_last_group_that_it_finished(tmp_path):
    groups = ["matmul", "memory_bandwidth", "attention"]
    plan = tiny_plan("killed-1", groups, row_s=0.05)
    process = subprocess.Popen(
        [sys.executable, "-P", *command(tmp_path, plan)], cwd=tmp_path, env=ENV,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    part = tmp_path / "result.json.part"
    deadline = time.monotonic() + 60
    while not part.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert not (tmp_path / "result.json").exists()
    before = parse_result(part.read_bytes())
    assert not before.complete

    done = run_probe(tmp_path, {**plan, "job_id": "42"})
    after = parse_result((tmp_path / "result.json").read_bytes())
    assert "going on after" in done.stderr
    assert after.results[: len(before.results)] == before.results
    assert [group.name for group in after.groups] == groups
    assert after.provenance.sessions == 2
    assert after.provenance.utc_start == before.provenance.utc_start
    assert after.complete
    assert not part.exists()


def test_another_plan_does_not_go_on_with_a_partial_result(tmp_path, probed):
    folder, _, _ = probed
    text = (folder / "result.json").read_text()
    (tmp_path / "result.json.part").write_text(text)
    run_probe(tmp_path, tiny_plan("quick-1", ["attention"]))
    result = parse_result((tmp_path / "result.json").read_bytes())
    assert {row.probe for row in result.results} == {"attention"}
    assert result.provenance.sessions == 1


def test_a_budget_for_nothing_ends_with_4_and_a_sentence(tmp_path):
    done = run_probe(tmp_path, tiny_plan("x"), "--budget-s", "1e-9", status=4)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        "runcast probe: nothing could be measured within 1e-09 s"
    )


def test_a_small_budget_names_what_it_left_out(tmp_path):
    plan = tiny_plan("x", ["attention", "compiled_block"])
    run_probe(tmp_path, plan, "--max-usd", "0.15", "--usd-per-hour", "36")
    result = parse_result((tmp_path / "result.json").read_bytes())
    assert result.budget_s == pytest.approx(15)  # less than a compilation needs
    assert 0 < result.usd < 0.15
    assert [(s.group, s.reason) for s in result.skipped] == [
        ("compiled_block", f"{USED_UP} before it")
    ]
    assert {row.probe for row in result.results} == {"attention"}
    assert not result.complete


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--max-usd", "3", "--max-usd needs --usd-per-hour"),
        ("--budget-s", "-1", "--budget-s must be above 0"),
        ("--run-id", "$(reboot)", "--run-id must be"),
    ],
)
def test_a_bad_option_ends_with_2_and_a_sentence(tmp_path, option, value, reason, capfd):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(tiny_plan("x")))
    assert node.main(["--plan", str(path), "--out", str(tmp_path / "r"), option, value]) == 2
    assert reason in capfd.readouterr().err


def test_a_busy_device_ends_with_3(tmp_path, monkeypatch, capfd):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(tiny_plan("x", ["matmul"])))
    monkeypatch.setattr(node, "why_busy", lambda device: "device 0 is 97% busy")
    out = tmp_path / "result.json"
    given = ["--plan", str(path), "--out", str(out)]
    assert node.main(given) == 3
    assert "device 0 is 97% busy; --force measures all the same" in capfd.readouterr().err
    assert not out.exists()
    assert node.main([*given, "--force"]) == 0
    assert parse_result(out.read_bytes()).complete


# --- several processes ---------------------------------------------------------------------------


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1",
            "--nproc-per-node=2")  # fmt: skip


@pytest.mark.slow
def test_two_processes_measure_collectives_together(tmp_path):
    groups = ["matmul", "collectives", "overlap", "checkpoint"]
    done = run_probe(tmp_path, tiny_plan("two", groups), by=TORCHRUN)
    assert "Warning" not in done.stderr  # torch 2.13 has renamed what is called here
    result = parse_result(printed(done.stdout, "two"))
    rows = result.rows("collectives")
    sizes = {}
    for row in rows:
        assert row.wrong == 0
        assert (row.params["group"], row.params["ranks"]) == ("intra_node", 2)
        assert row.bus_factor == bus_factor(row.params["op"], 2)
        assert row.bus_bytes_per_s == pytest.approx(row.bytes / row.t_med_s * row.bus_factor)
        sizes.setdefault(row.label, []).append(row.bytes)
    assert set(sizes) == set(OPS)
    for found in sizes.values():
        assert found[0] == 8
        assert found == sorted(found)
    (both,) = result.rows("overlap")
    assert both.t_compute_s > 0
    assert both.t_comm_s > 0
    assert (result.provenance.world_size, result.nodes[0].ranks) == (2, 2)
    for row in result.rows("matmul"):
        assert len(row.t_med_by_node_s) == 1
        assert row.t_med_s == row.t_med_by_node_s[0]
        assert row.slowest_rank in (0, 1)
    assert result.rows("checkpoint")[0].params["writers"] == 2


@pytest.mark.slow
def test_two_processes_go_on_together(tmp_path):
    """A partial result that only rank 0 sees moves both."""
    groups = ["memory_bandwidth", "collectives"]
    plan = tiny_plan("both", groups)
    run_probe(tmp_path, plan, by=TORCHRUN)
    finished = json.loads((tmp_path / "result.json").read_text())
    cut = {**finished, "complete": False, "groups": finished["groups"][:1]}
    cut["results"] = [r for r in finished["results"] if r["probe"] == groups[0]]
    (tmp_path / "result.json.part").write_text(json.dumps(cut))
    (tmp_path / "result.json").unlink()
    run_probe(tmp_path, plan, by=TORCHRUN)
    result = parse_result((tmp_path / "result.json").read_bytes())
    assert [r.model_dump() for r in result.rows(groups[0])] == [
        r.model_dump() for r in parse_result(json.dumps(cut)).results
    ]
    assert result.rows("collectives")


@pytest.mark.slow
def test_two_nodes_have_groups_within_across_and_over_all(tmp_path):
    """Two torchruns that meet on this machine: nodes are told apart by torchrun's number."""
    arguments = command(tmp_path, tiny_plan("nodes", ["collectives", "overlap"], collective_s=3.0))
    port = free_port()
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", f"--node-rank={number}",
             "--nproc-per-node=2", "--master-addr=127.0.0.1", f"--master-port={port}", *arguments],
            cwd=tmp_path, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for number in range(2)
    ]  # fmt: skip
    said = [process.communicate(timeout=110) for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    assert "BEGIN" not in said[1][0]  # only rank 0 prints
    result = parse_result(printed(said[0][0], "nodes"))
    assert [(node.index, node.ranks) for node in result.nodes] == [(0, 2), (1, 2)]
    for probe in ("collectives", "overlap"):
        rows = result.rows(probe)
        found = {
            (r.params["group"], r.params["ranks"], r.params["concurrent_groups"]) for r in rows
        }
        assert found == {("intra_node", 2, 2), ("inter_node", 2, 2), ("world", 4, 1)}
    nodes = {(r.params["group"], r.params["nodes"]) for r in result.rows("collectives")}
    assert nodes == {("intra_node", 1), ("inter_node", 2), ("world", 2)}
    assert {row.wrong for row in result.rows("collectives")} == {0}


@pytest.mark.slow
def test_the_whole_reduced_plan_with_a_compiled_block(tmp_path):
    plan = probe_plan.probe_plan(
        run_id="whole", launcher="local", planner_version="0.1.0", reduced=True
    )
    done = run_probe(tmp_path, plan)
    result = parse_result(printed(done.stdout, "whole"))
    measured = {row.probe for row in result.results}
    # Where no C++ compiler is, or where compiling took the rest of the budget, it is named.
    named = {one.group for one in result.skipped}
    assert measured | named == set(NEEDED)
    assert {"matmul", "layers", "holdout", "block"} <= measured
    assert result.wall_s < result.budget_s + 10
